"""What the recipes share that fine-tune pretrained models."""
