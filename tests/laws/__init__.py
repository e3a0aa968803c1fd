"""Test the laws that every position encoding of the registry must obey with all of its options.

`cases.py` derives the cases from the registry, `scene.py` makes inputs, `literal.py` contains a slow attention to
compare with, and `broken.py` contains the broken encodings that each law must catch. Each law is a function
`check_...(case, ...)`. A parametrised test calls this function for all cases, and another test calls it for a broken
encoding.
"""
