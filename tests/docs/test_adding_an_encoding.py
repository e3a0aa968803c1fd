"""Test that the encodings of docs/adding-an-encoding.md work, with the lines in the registry that the page names."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest
from laws.cases import Case
from laws.compare import assert_refused
from laws.scene import Scene
from laws.test_causality import check_causality
from laws.test_incremental import STEPS, check_incremental
from laws.test_memory import check_memory
from laws.test_padding import check_padding
from laws.test_reference import EXPLICIT, Forward, check_fused, check_gradients, check_reference

from fairseq_posenc import encodings
from fairseq_posenc.encodings import build
from fairseq_posenc.encodings.registry import ENCODINGS

PAGE = (Path(__file__).parents[2] / "docs" / "adding-an-encoding.md").read_text(encoding="utf-8")


def add_encodings(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the encodings of a page: their modules as if they were in the package, and their lines of the registry."""
    codes = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    places = re.findall(r'`"([a-z-]+)": "([a-z]+):[A-Za-z]+",`', page)
    for (name, stem), code in zip(places, codes, strict=True):
        module = types.ModuleType(f"{encodings.__name__}.{stem}")
        module.__package__ = encodings.__name__
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(ENCODINGS, name, f"{stem}:{name.title()}")
        exec(compile(code, f"docs/adding-an-encoding.md, {name}", "exec"), module.__dict__)


def check(case: Case) -> None:
    """Check an encoding by the laws that an encoding of one number per distance could break."""
    scene = Scene(before=2, side="left")
    check_reference(case, scene)
    check_fused(case, scene)
    check_gradients(Forward(case, scene), "explicit", EXPLICIT)
    check_padding(case, "left", "auto")
    check_memory(case, "auto")
    if case.causal:
        check_causality(case, "auto")
        check_incremental(case, STEPS["in chunks"], "left", "auto")


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("name", "args"), [("window", {}), ("window", {"width": 2}), ("root", {}), ("root", {"share": "none"})]
)
def test_the_encodings_of_the_page_work(
    name: str, args: dict[str, object], causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_encodings(PAGE, monkeypatch)
    check(Case(name, args, causal))


def test_the_learned_example_has_one_number_per_head(monkeypatch: pytest.MonkeyPatch) -> None:
    add_encodings(PAGE, monkeypatch)
    shape = Case("root").shape(layers=3, heads=2)
    assert {name: tuple(p.shape) for name, p in build("root", None, shape).named_parameters()} == {"root.slope": (1, 2)}
    assert build("root", "share=none", shape).members["root"].slope.shape == (3, 2)
    assert build("root", None, shape).members["root"].slope.eq(1).all()
    assert_refused(lambda: build("root", "init_std=0.5", shape), "init_std", "no effect")


@pytest.mark.parametrize(
    ("name", "right", "wrong"), [("window", "> self.options.width).to(torch", ">= self.options.width).to(torch"),
                                 ("root", "return -slope *", "return slope *")]
)  # fmt: skip
def test_a_wrong_example_is_caught(name: str, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert right in PAGE
    add_encodings(PAGE.replace(right, wrong), monkeypatch)
    with pytest.raises(AssertionError, match="differs by"):
        check(Case(name, {"width": 2} if name == "window" else {}))
