"""Data sets that fairseq does not have."""
