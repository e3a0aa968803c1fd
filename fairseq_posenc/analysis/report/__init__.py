"""Write a page that compares runs of recipes.

`runs.py` reads the results, `columns.py` defines the columns of the main table, and `papers.py` finds the papers'
numbers, for which `targets.py` knows the commands. `charts.py` draws the charts with Bokeh, `page.py` writes the HTML, and `tables.py` writes the CSV and LaTeX
files. `page.css`, `table.js` and `charts.js` are part of every page.
"""
