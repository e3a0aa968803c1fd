"""Test that the site of the documentation is not built if a page or a public name of the reference has a fault."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Faults of a page, each with the message that names it.
FAULTS = {
    "[there](gone.md)\n": "gone.md",
    "[there](#nowhere)\n": "'nowhere'",
    "<!-- reference: faulty -->\n": "bare is public, but has no docstring",
    "<!-- reference: open_module -->\n": "open_module has no __all__",
    "$$\\nonsense$$\n": 'cannot be shown: Unknown LaTeX command "\\nonsense"',
}


def build(folder: Path, page: str) -> subprocess.CompletedProcess[str]:
    """Build a site of one page with the project's configuration."""
    (folder / "docs" / "encodings").mkdir(parents=True)
    (folder / "docs" / "conf.py").write_text((ROOT / "docs" / "conf.py").read_text(encoding="utf-8"))
    for name in ("templates", "static"):
        (folder / "docs" / name).symlink_to(ROOT / "docs" / name)
    (folder / "docs" / "index.md").write_text(f"# Index\n\n{page}", encoding="utf-8")
    (folder / "faulty.py").write_text("'''Be faulty.'''\n__all__ = ['bare']\ndef bare(): pass\n")
    (folder / "open_module.py").write_text("'''Show everything.'''\n")
    (command,) = re.findall(r"sphinx-build (-M html .+)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    words = [sys.executable, "-m", "sphinx", *command.split()]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.skipif(find_spec("myst_parser") is None, reason="`make docs` installs the packages of the extra docs")
def test_every_fault_of_a_page_fails(tmp_path: Path) -> None:
    good = build(tmp_path / "good", "$$x^2$$\n\n[here](#index)\n")
    assert good.returncode == 0, good.stderr
    assert (tmp_path / "good" / "docs" / "_build" / "html" / "docs" / "index.html").exists()
    faulty = build(tmp_path / "faulty", "\n".join(FAULTS))
    assert faulty.returncode != 0
    assert [message for message in FAULTS.values() if message not in faulty.stderr] == []
