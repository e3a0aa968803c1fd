"""Check that there is only one copy of the plugin.

If there are two copies, both may register with fairseq, or one copy runs while the user edits the other copy.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlparse

from .report import Check
from .stack import installed

NAME = "fairseq_posenc"


def on_path(entries: Iterable[str]) -> set[Path]:
    """Return the folders of all copies of the plugin in these folders of the Python path."""
    folders = {Path(entry or ".").resolve() / NAME for entry in entries}
    return {folder for folder in folders if (folder / "__init__.py").is_file()}


def editable() -> set[Path]:
    """Return the folder of an editable installation, which Python finds even if it is not on sys.path."""
    try:
        record = distribution(NAME).read_text("direct_url.json")
    except PackageNotFoundError:
        return set()
    source = json.loads(record) if record else {}
    if not source.get("dir_info", {}).get("editable"):
        return set()
    return {Path(unquote(urlparse(source["url"]).path)).resolve() / NAME}


def check_plugin(running: Path, copies: Iterable[Path], is_installed: bool) -> Check:
    """Check that there is only one copy of the plugin.

    Args:
        running: Folder of the copy that runs this check.
        copies: Folders of all copies.
        is_installed: Whether a copy is installed.
    """
    others = sorted({*copies} - {running})
    if others:
        mend = (
            "keep one copy: run pip uninstall fairseq_posenc, or work in a folder outside the other copy and remove "
            "the other copy from PYTHONPATH"
        )
        state = f"there are several copies: {running} is in use, but there is also {', '.join(map(str, others))}"
        return Check("plugin", "fail", state, mend)
    state = "installed" if is_installed else "not installed, so fairseq finds the plugin with --user-dir only"
    return Check("plugin", "ok", f"{running} ({state})")


def plugin_check() -> Check:
    """Check that there is no copy of the plugin besides the one that this process runs."""
    running = Path(__file__).resolve().parents[2]
    installed_at = editable()
    return check_plugin(running, on_path(sys.path) | installed_at, bool(installed_at) or installed(NAME) is not None)
