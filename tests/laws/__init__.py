"""The laws: what every position encoding of the registry must obey, whichever options it has.

`cases.py` derives from the registry what is tested, `scene.py` makes inputs, `literal.py` is a slow attention
to compare with, `broken.py` holds the encodings that each law must catch. Each law is a function
`check_...(case, ...)` that a parametrised test and a test with a broken encoding share.
"""
