"""Write the HTML elements of the report page, and escape every text from results: in HTML or in JSON for scripts."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from pathlib import Path

FOLDER = Path(__file__).parent
#: Characters of JSON that could end a script or begin a comment of HTML.
UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def element(name: str, text: str, **attributes: str) -> str:
    """Return an HTML element with escaped text and attributes; the argument `class_` sets the attribute `class`."""
    return f"<{name}{_attributes(attributes)}>{escape(text)}</{name}>"


def wrapped(name: str, content: str, **attributes: str) -> str:
    """Return an HTML element whose content is HTML that is already escaped."""
    return f"<{name}{_attributes(attributes)}>{content}</{name}>"


def _attributes(attributes: dict[str, str]) -> str:
    names = {name: name.rstrip("_").replace("_", "-") for name in attributes}
    return "".join(f' {names[name]}="{escape(value)}"' for name, value in attributes.items())


def json_script(identifier: str, value: object) -> str:
    """Return an HTML element with data for the page's scripts, escaped so that no text in the data ends the element."""
    text = "".join(UNSAFE.get(character, character) for character in json.dumps(value))
    return f'<script type="application/json" id="{identifier}">{text}</script>'


def code(text: str) -> str:
    """Return HTML that shows a command, with a button that copies the command."""
    button = '<button type="button" class="copy">Copy</button>'
    return wrapped("div", f"{wrapped('pre', element('code', text), tabindex='0')}{button}", class_="command")


def image(path: Path, text: str) -> str:
    """Return a PNG file as an HTML element that contains the bytes of the image."""
    return f'<img alt="{escape(text)}" src="data:image/png;base64,{b64encode(path.read_bytes()).decode()}">'


def package_file(name: str) -> str:
    """Return the text of a style sheet or script in this folder."""
    return (FOLDER / name).read_text(encoding="utf-8")


def policy(scripts: list[str]) -> str:
    """Return the content security policy that lets the browser run only these scripts, and load nothing."""
    hashes = " ".join(f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts)
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {hashes}"
