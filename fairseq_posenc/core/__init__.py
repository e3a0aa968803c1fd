"""Provide the parts that all encodings share: the base class, composition, options, tables and caches."""
