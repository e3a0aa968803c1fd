"""Prepare text for masked language models: split it into documents, sentences and pieces, and write shards.

The modules import neither torch nor fairseq, so that a process of the pipeline starts in a second and stays small.
"""
