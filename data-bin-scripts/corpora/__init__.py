"""From text to what masked language models train on: documents, sentences, pieces, shards.

No torch and no fairseq here: a process of the pipeline starts in a second and is small.
"""
