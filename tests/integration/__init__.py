"""Test the plugin with fairseq's own parser, trainer, generator and processes, on a tiny corpus of random words."""
