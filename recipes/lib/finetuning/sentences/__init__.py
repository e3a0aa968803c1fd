"""Settings and stages shared by the recipes that classify sentences and pairs of sentences."""
