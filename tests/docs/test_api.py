"""Test that the modules of the Python reference declare their public names, and that public names have docstrings."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = re.findall(r"<!-- reference: (\S+) -->", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"))


def undocumented(module: ModuleType) -> Iterator[str]:
    """Yield the public names of a module, and the public methods of its classes, that have no docstring."""
    for name in module.__all__:
        value = getattr(module, name)
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        own = vars(value).items() if inspect.isclass(value) else ()
        methods = {f"{name}.{key}": member for key, member in own if inspect.isfunction(member) and key[0] != "_"}
        yield from (label for label, member in {name: value, **methods}.items() if not inspect.getdoc(member))


@pytest.mark.parametrize("name", MODULES)
def test_public_names_have_docstrings(name: str) -> None:
    assert list(undocumented(import_module(name))) == []


def test_a_missing_docstring_is_found() -> None:
    module = ModuleType("module")
    exec("__all__ = ['A', 'f']\nclass A:\n '''Hold.'''\n def g(self): pass\ndef f(): pass", vars(module))
    assert list(undocumented(module)) == ["A.g", "f"]


# -- the site -----------------------------------------------------------------------------------------------

FAULTS = {
    "a broken link": ("[there](gone.md)\n", "gone.md"),
    "a link to a heading that does not exist": ("[there](#nowhere)\n", "'nowhere'"),
    "a public function without a docstring": ("<!-- reference: faulty -->\n", "bare is public, but has no docstring"),
    "a module that does not say what is public": ("<!-- reference: open_module -->\n", "open_module has no __all__"),
    "a formula that cannot be shown": ("$$\\nonsense$$\n", 'cannot be shown: Unknown LaTeX command "\\nonsense"'),
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
    path = os.pathsep.join([str(folder), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-m", "sphinx", *command.split()],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.skipif(find_spec("myst_parser") is None, reason="`make docs` installs the packages of the extra docs")
def test_every_fault_of_a_page_fails(tmp_path: Path) -> None:
    good = build(tmp_path / "good", "$$x^2$$\n\n[here](#index)\n")
    assert good.returncode == 0, good.stderr
    assert (tmp_path / "good" / "docs" / "_build" / "html" / "docs" / "index.html").exists()
    faulty = build(tmp_path / "faulty", "\n".join(page for page, _ in FAULTS.values()))
    assert faulty.returncode != 0
    assert [fault for fault, (_, message) in FAULTS.items() if message not in faulty.stderr] == []
