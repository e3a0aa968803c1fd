"""Write a page of the documentation as a Jupyter notebook: Python blocks become cells of code."""

from __future__ import annotations

import json
import re
from typing import Any

PAGE = "python.md"
_BLOCK = re.compile(r"^```python\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


def of_page(page: str) -> str:
    """Return the notebook of a page, as JSON; it contains no outputs."""
    cells: list[dict[str, Any]] = []
    for number, text in enumerate(_BLOCK.split(page)):
        if text.strip() and number % 2:
            cells.append({"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": text})
        elif text.strip():
            cells.append({"cell_type": "markdown", "metadata": {}, "source": text.strip("\n")})
    for cell in cells:
        cell["source"] = cell["source"].splitlines(keepends=True)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 4}
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"
