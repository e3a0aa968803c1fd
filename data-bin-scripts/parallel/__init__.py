"""Clean parallel text, count it at every step, and write the files that the translation recipe takes."""
