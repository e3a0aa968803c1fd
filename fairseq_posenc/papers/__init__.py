"""The numbers that the papers print, as data: one file per table, and the code that reads them."""
