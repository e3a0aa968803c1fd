"""What all encodings are built of: the base class, composition, options, tables, caches."""
