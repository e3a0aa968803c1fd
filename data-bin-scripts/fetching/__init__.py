"""Implement `fetch.py`: the list of published files, downloads, checks and unpacking."""
