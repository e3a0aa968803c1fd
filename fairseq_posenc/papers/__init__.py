"""Hold the numbers that the papers print: a data file for each table, and the code that reads these files."""
