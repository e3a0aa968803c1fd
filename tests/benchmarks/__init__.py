"""Measure the cost of encodings: of one layer (layers.py), and of whole models of fairseq (whole_models.py).

These are commands, not tests, because times depend on the machine. The tests of this folder check that the commands
work.
"""
