"""The plugin inside fairseq: the real parser, trainer, generator and processes, on a tiny corpus of random words."""
