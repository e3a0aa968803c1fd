"""Prepare published archives or your own files for text classification from scratch."""
