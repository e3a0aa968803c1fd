"""Provide what all encodings share: the base class, composition, options, tables and caches."""
