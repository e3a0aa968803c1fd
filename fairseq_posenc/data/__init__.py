"""Datasets that fairseq lacks."""
