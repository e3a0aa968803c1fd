"""Compute products with vectors of relative distances, and the other tensor operations of the encodings."""
