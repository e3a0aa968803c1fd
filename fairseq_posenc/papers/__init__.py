"""The numbers that the papers print, as data: a file for each table, and what reads them."""
