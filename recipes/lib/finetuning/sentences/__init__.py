"""What the recipes share that classify sentences and pairs of sentences."""
