"""GLUE's published files to what fairseq's sentence prediction reads."""
