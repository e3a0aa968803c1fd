"""List the public interface as text: names, signatures, flags, options and fields of results.

`python tests/support_public_api.py` writes the list to tests/public_api.txt.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_name("public_api.txt")
#: The modules that docs/ describes for users of Python. Each module has an exact `__all__`.
MODULES = (".positions", ".encodings", ".attention", ".stack", ".hub", ".metrics", "")


class Plain(str):
    """Show an annotation as it is written, without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def modules() -> Iterator[str]:
    """Return a section for each public module: the signature of each name and of the public methods of classes.

    A name that an earlier module has is only named again.
    """
    known: set[str] = set()
    for name in MODULES:
        module = importlib.import_module(f"fairseq_posenc{name}")
        public = {key: getattr(module, key) for key in sorted(module.__all__)}
        yield section(
            module.__name__,
            [line for key, value in public.items() for line in ([key] if key in known else described(key, value))],
        )
        known |= set(public)


def described(name: str, value: Any) -> list[str]:
    """Return the lines of a name: its signature and, for a class of this package, those of its public methods."""
    if not callable(value):
        return [f"{name}: {type(value).__name__}"]
    if not inspect.isclass(value):
        return [f"{name}{signature(value)}"]
    own: dict[str, Any] = {}
    for cls in reversed(value.__mro__):
        own |= vars(cls) if cls.__module__.startswith("fairseq_posenc") else {}
    fields = getattr(value, "__dataclass_fields__", {})
    names = sorted(key for key in own if not key.startswith("_") and key not in fields)
    methods = [f"    {member(key, own[key])}" for key in names]
    return [f"{name}{signature(value)}", *methods]


def member(name: str, value: Any) -> str:
    """Return the line of a public attribute of a class."""
    function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    return f"{name}{signature(function)}" if inspect.isfunction(function) else name


def signature(function: Callable[..., Any]) -> str:
    """Return the signature of a function, without addresses of objects in defaults."""
    try:
        written = inspect.signature(function)
    except ValueError:  # a class without an __init__ of its own
        return "(...)"
    parameters = [p.replace(annotation=plain(p.annotation)) for p in written.parameters.values()]
    return str(written.replace(parameters=parameters, return_annotation=plain(written.return_annotation)))


def plain(annotation: Any) -> Any:
    text = getattr(annotation, "__forward_arg__", annotation)  # a NamedTuple keeps its annotations in this form
    return Plain(text) if isinstance(text, str) else text


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
    """Return a section for each kind of fairseq component, with the flags that each of ours reads."""
    from fairseq.criterions import CRITERION_REGISTRY
    from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY, MODEL_REGISTRY
    from fairseq.optim import OPTIMIZER_REGISTRY
    from fairseq.scoring import SCORER_REGISTRY
    from fairseq.tasks import TASK_REGISTRY

    from fairseq_posenc.compat.registration import register

    register()

    def ours(registry: dict[str, Any]) -> dict[str, Any]:
        return {name: cls for name, cls in sorted(registry.items()) if cls.__module__.startswith("fairseq_posenc")}

    registries = {"models": MODEL_REGISTRY, "tasks": TASK_REGISTRY, "criterions": CRITERION_REGISTRY}
    for kind, registry in {**registries, "optimizers": OPTIMIZER_REGISTRY, "scorers": SCORER_REGISTRY}.items():
        lines = [line for name, cls in ours(registry).items() for line in under(name, added(cls))]
        yield section(f"fairseq: {kind}", lines)
    architectures = sorted(name for name in ARCH_CONFIG_REGISTRY if name in ours(ARCH_MODEL_REGISTRY))
    yield section("fairseq: architectures", architectures)


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
            for name, command in action.choices.items():
                found += [f"{name}({' '.join(flags(command))})"]
        elif not isinstance(action, argparse._HelpAction):
            found += sorted(action.option_strings, key=len)[-1:] or [action.dest.upper()]
    return sorted(found)


def commands() -> str:
    """Return a section with the flags of each command of `python -m fairseq_posenc`."""
    from fairseq_posenc.__main__ import COMMANDS

    return programs("python -m fairseq_posenc", {name: f"fairseq_posenc.{own[0]}" for name, own in COMMANDS.items()})


def scripts() -> str:
    """Return a section with the flags of each program in data-bin-scripts/."""
    folder = ROOT / "data-bin-scripts"
    sys.path.insert(0, str(folder))
    paths = [path for path in sorted(folder.glob("*.py")) if "parse_args(" in path.read_text(encoding="utf-8")]
    return programs("data-bin-scripts", {path.name: path.stem for path in paths})


def programs(title: str, modules: dict[str, str]) -> str:
    """Return a section with the flags that the function `main` of each module reads."""
    lines = []
    for name, module in modules.items():
        parse = patch.object(argparse.ArgumentParser, "parse_args", autospec=True, side_effect=SystemExit)
        with parse as called, suppress(SystemExit):
            importlib.import_module(module).main([])
        lines += under(name, flags(called.call_args.args[0]))
    return section(title, lines)


def recipes() -> Iterator[str]:
    """Return the presets and the options of each recipe."""
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
    sections = [*modules(), encodings(), *plugin(), commands(), scripts(), *recipes()]
    return "\n\n".join(sections) + "\n"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    LIST.write_text(text(), encoding="utf-8")
    print(f"wrote {LIST}")
