"""Prepare questions about texts (SQuAD, CMRC 2018, the files of Du et al. 2017) for question generation."""
