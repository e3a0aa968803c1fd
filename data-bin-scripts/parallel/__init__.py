"""Parallel text, cleaned and counted at every step, in the files that the translation recipe takes."""
