"""Define data sets that fairseq does not have."""
