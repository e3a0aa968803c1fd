"""The command line of a recipe, made from its settings."""

from __future__ import annotations

import argparse
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args, get_origin, get_type_hints

from .package import nearest
from .recipe import FILES, Recipe, S
from .settings import read_preset
from .values import Refused, is_table, wanted

#: what the last word of a setting's name says about its value
PLACES = {
    "file": "FILE",
    "raw": "DIR",
    "data": "DIR|NAME",
    "corpus": "DIR|NAME",
    "path": "PATH",
    "dir": "DIR",
    "args": "A=B,...",
}
MARK = "setting "  # before a setting's name, so that it cannot be taken for an option of the library


@dataclass(frozen=True)
class Options:
    preset: str | None
    config: Path | None
    output: Path | None
    stage: str | None
    stop_stage: str | None
    list: bool
    dry_run: bool
    force: bool
    given: dict[str, str]  # the settings among the options


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refused(f"{message}; --help lists the options")


def parse(recipe: Recipe[S], arguments: list[str]) -> Options:
    parser = make_parser(recipe)
    found, rest = parser.parse_known_args(arguments)
    tables = {name for name, hint in get_type_hints(recipe.settings).items() if is_table(hint)}
    named = {name: value for name, value in vars(found).items() if not name.startswith(MARK)}
    given = {name[len(MARK) :]: v for name, v in vars(found).items() if name.startswith(MARK) and v is not None}
    for one in fields(recipe.settings):
        if one.name in given and FILES in one.metadata:
            raise Refused(f"--{one.name.replace('_', '-')} is of presets and of --config FILE: leave it out")
    known = [word for action in parser._actions for word in action.option_strings if word.startswith("--")]
    return Options(**named, given={**given, **of_tables(rest, tables, known)})


def of_tables(words: list[str], tables: set[str], known: list[str]) -> dict[str, str]:
    """`--train.lr 0.1` and `--train.lr=0.1`; argparse knows no such families of options."""
    given: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        table, dot, key = name.removeprefix("--").partition(".")
        if not word.startswith("--"):
            raise Refused(f"unexpected '{word}': every setting has a name; --help lists them")
        if not dot or table.replace("-", "_") not in tables:
            near = nearest(name, [*known, *(f"--{one.replace('_', '-')}.KEY" for one in tables)])
            raise Refused(f"unknown option {name}{near}")
        text = value if equals else next(rest, None)
        if text is None:
            raise Refused(f"{name} needs a value")
        given[f"{table.replace('-', '_')}.{key}"] = text
    return given


def make_parser(recipe: Recipe[S]) -> Parser:
    parser = Parser(
        prog=recipe.program,
        description=recipe.description,
        epilog=_epilog(recipe),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # an option may become ambiguous, or another one, as settings are added
    )
    add = parser.add_argument
    presets = f"Settings to start from: {', '.join(recipe.presets())} (default: {recipe.preset}). They are in conf/."
    add("--preset", metavar="NAME", help=presets)
    add("--config", type=Path, metavar="FILE", help="TOML file with settings that replace those of the preset.")
    add("--output", type=Path, metavar="DIR", help=f"Output folder (default: results/{recipe.name} in the repository).")
    add("--stage", metavar="NAME", help="Begin with this stage; all stages before it must be done.")
    add("--stop-stage", metavar="NAME", help="End with this stage.")
    add("--force", action="store_true", help="Repeat the stages; stages that depend on them are repeated later.")
    add("--list", action="store_true", help="List the stages and show which are done.")
    add("--dry-run", action="store_true", help="Print every command without running it.")
    _add_settings(parser, recipe)
    return parser


def _add_settings(parser: Parser, recipe: Recipe[S]) -> None:
    group = parser.add_argument_group(f"settings, with the defaults of preset {recipe.preset}")
    hints = get_type_hints(recipe.settings)
    preset = read_preset(recipe.conf / f"{recipe.preset}.toml")
    for one in fields(recipe.settings):
        if not is_table(hints[one.name]):
            option = f"--{one.name.replace('_', '-')}"
            default = preset.get(one.name.replace("_", "-"), preset.get(one.name, _default(one)))
            text = argparse.SUPPRESS if FILES in one.metadata else _help(one, hints[one.name], default)
            group.add_argument(option, dest=MARK + one.name, metavar=_metavar(one.name, hints[one.name]), help=text)


def _default(one: Field[Any]) -> object:
    """Return the default of a setting, or None if every preset sets it."""
    if one.default is not MISSING:
        return one.default
    return one.default_factory() if one.default_factory is not MISSING else None


def _metavar(name: str, hint: Any) -> str:
    """Return the type of an option's value, such as N, FILE or `{a,b}`."""
    if get_origin(hint) is list:
        return f"{_metavar(name, get_args(hint)[0])},..."
    if get_origin(hint) is Literal:
        return "{" + ",".join(map(str, get_args(hint))) + "}"
    kinds = {int: "N", float: "LR" if name == "lr" else "X", bool: "{true,false}"}
    return kinds.get(hint) or PLACES.get(name.rpartition("_")[2], "NAME")


def _help(one: Field[Any], hint: Any, default: object) -> str:
    text = str(one.metadata.get("help", f"{wanted(hint).capitalize()}."))
    if default in (None, "", []):
        return text.replace("%", "%%")
    shown = ",".join(map(str, default)) if isinstance(default, list) else str(default)
    shown = shown.lower() if isinstance(default, bool) else shown
    return f"{text.removesuffix('.')} (default: {shown}).".replace("%", "%%")


def _epilog(recipe: Recipe[S]) -> str:
    hints = get_type_hints(recipe.settings)
    tables = [one for one in fields(recipe.settings) if is_table(hints[one.name])]
    lines = [f"  --{one.name.replace('_', '-')}.KEY VALUE: {one.metadata.get('help', 'see conf/')}" for one in tables]
    examples = [f"  {recipe.program} {example}" for example in recipe.examples]
    return "\n".join([*(["tables of settings:", *lines, ""] if lines else []), "examples:", *examples])
