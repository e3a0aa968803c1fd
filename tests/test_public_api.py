"""Test that the public interface is the one that tests/public_api.txt lists: signatures, flags, options and presets.

`python tests/test_public_api.py` writes the list.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_name("public_api.txt")
#: The modules that docs/ describes for users of Python. Each module has an exact `__all__`.
MODULES = (".positions", ".encodings", ".attention", ".stack", ".hub", ".metrics", "")
CURE = """\
What users rely on has changed (- is gone, + is new). If this is intended: run `python tests/test_public_api.py`, and
tell users in docs/CHANGELOG.md what they have to change."""


def modules() -> Iterator[str]:
    """Yield a section for each public module: the signature of each name and of the public methods of classes.

    A name that an earlier module has is only named again.
    """
    known: set[str] = set()
    for name in MODULES:
        module = importlib.import_module(f"fairseq_posenc{name}")
        public = sorted(module.__all__)
        new = {key: getattr(module, key) for key in public if key not in known}
        lines = [line for key in public for line in (described(key, new[key]) if key in new else [key])]
        yield section(module.__name__, lines)
        known |= new.keys()


def described(name: str, value: Any) -> list[str]:
    """Return the lines of a name: its signature and, for a class of this package, those of its public methods."""
    if not callable(value):
        return [f"{name}: {type(value).__name__}"]
    own: dict[str, Any] = {}
    for cls in reversed(value.__mro__ if inspect.isclass(value) else ()):
        own |= vars(cls) if cls.__module__.startswith("fairseq_posenc") else {}
    names = sorted({key for key in own if not key.startswith("_")} - getattr(value, "__dataclass_fields__", {}).keys())
    return under(f"{name}{signature(value)}", [f"{key}{signature(own[key])}" for key in names])


def signature(value: Any) -> str:
    """Return the signature of a function or class as it is written, and an empty text for other values."""
    function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    if not (inspect.isfunction(function) or inspect.isclass(function)):
        return ""
    try:
        return re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(function)))  # annotations are texts
    except ValueError:  # a class without an __init__ of its own
        return "(...)"


def encodings() -> str:
    """Return a section with the options of each encoding and their choices."""
    from fairseq_posenc.core.options import describe
    from fairseq_posenc.encodings import get, names

    def text(option: dict[str, Any]) -> str:
        choices = f" of {', '.join(option['choices'])}" if option["choices"] else ""
        return f"{option['name']}={option['default']}{choices}"

    lines = [line for name in names() for line in under(name, map(text, describe(get(name).Options)))]
    return section("--pos-enc and --pos-enc-args", lines)


def plugin() -> Iterator[str]:
    """Yield a section for each kind of fairseq component, with the flags that each of ours reads."""
    from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_REGISTRY

    from fairseq_posenc.compat.registration import register

    register()
    registries = {"models": MODEL_REGISTRY, "tasks": TASK_REGISTRY}
    for kind in ("criterion", "optimizer", "scoring"):
        registries[kind] = REGISTRIES[kind]["registry"]
    for kind, registry in registries.items():
        ours = {name: cls for name, cls in sorted(registry.items()) if cls.__module__.startswith("fairseq_posenc")}
        lines = [line for name, cls in ours.items() for line in under(name, added(cls))]
        yield section(f"fairseq: {kind}", lines)
    architectures = ARCH_MODEL_REGISTRY.items()
    names = sorted(name for name, cls in architectures if cls.__module__.startswith("fairseq_posenc"))
    yield section("fairseq: architectures", names)


def added(cls: Any) -> list[str]:
    """Return the flags that a component of ours adds to those of the component of fairseq that it extends."""
    parser, base = (argparse.ArgumentParser(add_help=False, conflict_handler="resolve") for _ in range(2))
    theirs = next((one for one in cls.__mro__ if not one.__module__.startswith("fairseq_posenc")), object)
    for one, into in ((cls, parser), (theirs, base)):
        if hasattr(one, "add_args"):
            one.add_args(into)
    return [flag for flag in flags(parser) if flag not in flags(base)]


def flags(parser: argparse.ArgumentParser) -> list[str]:
    """Return the flags of a parser and of its commands, and its positional arguments in capital letters."""
    found = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found += [f"{name}({' '.join(flags(command))})" for name, command in action.choices.items()]
        elif not isinstance(action, argparse._HelpAction):
            found += sorted(action.option_strings, key=len)[-1:] or [action.dest.upper()]
    return sorted(found)


def programs() -> Iterator[str]:
    """Yield the flags that the function `main` of each command and of each data script reads."""
    from fairseq_posenc.__main__ import COMMANDS

    scripts = ROOT / "data-bin-scripts"
    sys.path.insert(0, str(scripts))
    paths = [path for path in sorted(scripts.glob("*.py")) if "parse_args(" in path.read_text(encoding="utf-8")]
    for title, names in {
        "python -m fairseq_posenc": {name: f"fairseq_posenc.{own[0]}" for name, own in COMMANDS.items()},
        scripts.name: {path.name: path.stem for path in paths},
    }.items():
        lines = []
        for name, module in names.items():
            parse = patch.object(argparse.ArgumentParser, "parse_args", autospec=True, side_effect=SystemExit)
            with parse as called, suppress(SystemExit):
                importlib.import_module(module).main([])
            lines += under(name, flags(called.call_args.args[0]))
        yield section(title, lines)


def recipes() -> Iterator[str]:
    """Yield the presets and the options of each recipe."""
    from recipes.lib.settings import declared

    for path in sorted((ROOT / "recipes").glob("*/run.sh")):
        options = [f"--{name.replace('_', '-')}" for name in declared(path)]
        presets = sorted(preset.stem for preset in path.parent.glob("conf/*.sh"))
        yield section(f"recipes/{path.parent.name}", [*under("presets", presets), *under("options", options)])


def under(title: str, lines: Iterable[str]) -> list[str]:
    return [title, *(f"    {line}" for line in lines)]


def section(title: str, lines: Iterable[str]) -> str:
    return "\n".join([f"[{title}]", *lines])


def text() -> str:
    """Return the whole list."""
    return "\n\n".join([*modules(), encodings(), *plugin(), *programs(), *recipes()]) + "\n"


def test_the_list_is_current() -> None:
    difference = list(difflib.unified_diff(LIST.read_text("utf-8").splitlines(), text().splitlines(), lineterm=""))
    assert not difference, "\n".join([CURE, *difference])


def test_the_names_of_the_package_are_those_of_its_modules() -> None:
    import fairseq_posenc

    late = fairseq_posenc._MODULES
    assert sorted(fairseq_posenc.__all__) == sorted([*late, "__version__", "load"])
    assert set(late) <= set(dir(fairseq_posenc))
    for name, module in late.items():
        home: Any = importlib.import_module(f"fairseq_posenc.{module}")
        assert getattr(fairseq_posenc, name) is getattr(home, name)
        assert name in home.__all__
    with pytest.raises(AttributeError, match="no attribute 'Stak'"):
        _ = fairseq_posenc.Stak


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    LIST.write_text(text(), encoding="utf-8")
    print(f"wrote {LIST}")
