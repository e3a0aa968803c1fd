"""Settings and stages shared by the recipes for extractive question answering."""
