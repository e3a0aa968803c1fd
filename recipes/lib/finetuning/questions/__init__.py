"""What the recipes share that answer questions with spans of a text."""
