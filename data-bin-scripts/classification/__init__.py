"""Text classification from scratch: published archives or your own files to what sentence prediction reads."""
