"""Prepare text for masked language models: documents, sentences, pieces, shards.

The modules import neither torch nor fairseq, so that a process of the pipeline starts in a second and stays small.
"""
