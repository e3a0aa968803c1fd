"""Write a page that compares runs of recipes.

`runs.py` and `columns.py` read what is shown, `charts.py` draws it with Bokeh, `page.py` writes the HTML, and
`tables.py` the CSV and LaTeX files beside it. `page.css`, `table.js` and `charts.js` are part of every page.
"""
