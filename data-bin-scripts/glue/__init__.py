"""Convert GLUE's published files to the files that fairseq's sentence prediction reads."""
