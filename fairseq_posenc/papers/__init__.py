"""Numbers that the papers print, as data."""
