"""Write a page that compares runs of recipes.

`runs.py` reads the results, and `columns.py` defines the columns of the main table. `papers.py` finds the papers'
numbers, and `targets.py` the commands that compute ours. `charts.py` draws the charts with Bokeh, `page.py` writes the
HTML, and `tables.py` writes the CSV and LaTeX files. `page.css`, `table.js` and `charts.js` are part of every page.
"""
