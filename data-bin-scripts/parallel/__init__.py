"""Clean parallel text, count the pairs at every step, and write the files that the translation recipe reads."""
