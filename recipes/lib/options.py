"""Build and parse the command line of a recipe from its settings."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args, get_origin, get_type_hints

from .package import nearest
from .recipe import FILES, Recipe, S
from .settings import Table, from_files
from .values import Flags, Refused, expected, is_table

#: Metavar of a setting by the last word of its name.
PLACES = {
    "file": "FILE",
    "raw": "DIR",
    "data": "DIR|NAME",
    "corpus": "DIR|NAME",
    "path": "PATH",
    "dir": "DIR",
    "args": "A=B,...",
    "checkpoint": "PATH",
    "from": "PATH",
    **dict.fromkeys(("books", "languages", "beside"), "DIR"),
    **dict.fromkeys(("dataset", "encoder"), "DIR|NAME"),
    "glove": "FILE|NAME",
    "rendezvous": "HOST:PORT",
}
MARK = "setting "  # prefix of a setting's name in argparse, so that it cannot collide with a general option


@dataclass(frozen=True)
class Options:
    """Hold the parsed command line of a recipe."""

    preset: str | None
    config: Path | None
    output: Path | None
    stage: str | None
    stop_stage: str | None
    list: bool
    dry_run: bool
    force: bool
    settings: dict[str, str]  # values of settings as text, such as `train.lr`


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refused(f"{message}. List the options with --help.")


class Once(argparse.Action):
    """Store the value of an option, and refuse a second value instead of ignoring the first."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: str | None = None) -> None:
        if getattr(namespace, self.dest) is not None:
            raise Refused(f"{option} is given twice. Give the option only once.")
        setattr(namespace, self.dest, values)


class Joined(argparse.Action):
    """Store the items of a list option. If the option is repeated, the items are added to the list."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: str | None = None) -> None:
        earlier = getattr(namespace, self.dest)
        setattr(namespace, self.dest, values if earlier is None else f"{earlier},{values}")


def parse(recipe: Recipe[S], arguments: list[str]) -> Options:
    """Parse the command line of a recipe.

    Raises:
        Refused: An option is unknown, lacks its value or cannot be set on the command line.
    """
    chosen = files(recipe, arguments)
    parser = make_parser(recipe, *chosen)
    parsed, rest = parser.parse_known_args(arguments)
    tables = {name for name, hint in get_type_hints(recipe.settings).items() if is_table(hint)}
    general = {name: value for name, value in vars(parsed).items() if not name.startswith(MARK)}
    texts = {name[len(MARK) :]: v for name, v in vars(parsed).items() if name.startswith(MARK) and v is not None}
    for setting in fields(recipe.settings):
        if setting.name in texts and FILES in setting.metadata:
            option = f"--{setting.name.replace('_', '-')}"
            raise Refused(
                f"{option}: this setting cannot be given on the command line. Put this setting into a --config FILE."
            )
    known = [word for action in parser._actions for word in action.option_strings if word.startswith("--")]
    values, _ = from_files(recipe, *chosen)
    keyed = [f"--{table.replace('_', '-')}.{key}" for table in sorted(tables) for key in values.get(table, {})]
    return Options(**general, settings={**texts, **of_tables(rest, tables, known, keyed)})


def of_tables(words: list[str], tables: set[str], known: list[str], keyed: list[str]) -> dict[str, str]:
    """Parse options such as `--train.lr 0.1` and `--train.lr=0.1`, which argparse cannot express.

    Args:
        words: Words of the command line that argparse did not recognise.
        tables: Names of the settings that are tables, such as `train`.
        known: All other options of the recipe. The error about an unknown option suggests a similar known one.
        keyed: Options such as `--train.lr` that the preset sets, which are suggested for `--lr`.
    """
    texts: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        table, dot, key = name.removeprefix("--").partition(".")
        if not word.startswith("--"):
            raise Refused(
                f"unexpected argument '{word}': every value needs an option before it. List the options with --help."
            )
        if not dot or table.replace("-", "_") not in tables:
            named = [option for option in keyed if option.partition(".")[2] == name.removeprefix("--")]  # such as `lr`
            forms = [*known, *(f"--{one.replace('_', '-')}.{key or 'KEY'}" for one in sorted(tables))]
            near = f"; did you mean {' or '.join(named)}?" if named else nearest(name, forms)
            raise Refused(f"unknown option {name}{near}")
        text = value if equals else next(rest, None)
        if text is None:
            raise Refused(f"{name}: this option needs a value.")
        setting = f"{table.replace('-', '_')}.{key}"
        if setting in texts:
            raise Refused(f"{name} is given twice. Give the option only once.")
        texts[setting] = text
    return texts


def files(recipe: Recipe[S], arguments: list[str]) -> tuple[str | None, Path | None]:
    """Return the values of --preset and --config, because --help shows the settings of these files."""
    parser = Parser(prog=recipe.program, add_help=False, allow_abbrev=False)
    parser.add_argument("--preset", action=Once)
    parser.add_argument("--config", action=Once, type=Path)
    parsed, _ = parser.parse_known_args(arguments)
    return parsed.preset, parsed.config


def make_parser(recipe: Recipe[S], preset: str | None = None, config: Path | None = None) -> Parser:
    """Return the parser of a recipe; its --help shows the settings of `preset` and `config` as the defaults."""
    values, _ = from_files(recipe, preset, config)
    named = f"the preset {preset or recipe.preset}" + (f" and of {config}" if config else "")
    parser = Parser(
        prog=recipe.program,
        description=recipe.description,
        epilog=_epilog(recipe, values, named),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # an abbreviation could change its meaning when settings are added
    )
    add = parser.add_argument
    presets = f"Preset with all settings: {', '.join(recipe.presets())} (default: {recipe.preset}), from conf/."
    add("--preset", action=Once, metavar="NAME", help=presets)
    text = "TOML file with settings that replace the settings of the preset."
    add("--config", action=Once, type=Path, metavar="FILE", help=text)
    text = f"Output folder (default: results/{recipe.name} in the repository)."
    add("--output", action=Once, type=Path, metavar="DIR", help=text)
    text = "Begin with this stage; all stages before it must be done."
    add("--stage", action=Once, metavar="NAME", help=text)
    add("--stop-stage", action=Once, metavar="NAME", help="Stop after this stage.")
    add(
        "--force",
        action="store_true",
        help="Repeat the chosen stages even if they are done; later stages that depend on them then count as not done.",
    )
    add("--list", action="store_true", help="List the stages and show which are done.")
    add("--dry-run", action="store_true", help="Print every command without running it.")
    title = f"settings, with the values of {named} (for the values of another preset, add --preset NAME to --help)"
    _add_settings(parser.add_argument_group(title), recipe, values)
    return parser


def _add_settings(group: argparse._ArgumentGroup, recipe: Recipe[S], values: Table) -> None:
    hints = get_type_hints(recipe.settings)
    for setting in fields(recipe.settings):
        name, hint = setting.name, hints[setting.name]
        if not is_table(hint):
            default = values.get(name, _default(setting))
            text = argparse.SUPPRESS if FILES in setting.metadata else _help(setting, hint, default)
            option = f"--{name.replace('_', '-')}"
            action = Joined if get_origin(hint) is list else Once
            group.add_argument(option, action=action, dest=MARK + name, metavar=_metavar(name, hint), help=text)


def _default(setting: Field[Any]) -> object:
    """Return the default of a setting, or None if every preset must contain the setting."""
    if setting.default is not MISSING:
        return setting.default
    return setting.default_factory() if setting.default_factory is not MISSING else None


def _metavar(name: str, hint: Any) -> str:
    """Return the type of an option's value, such as N, FILE or `{a,b}`."""
    if get_origin(hint) is list:
        return f"{_metavar(name.removesuffix('s'), get_args(hint)[0])},..."  # several languages are names, not a folder
    if get_origin(hint) is Literal:
        return "{" + ",".join(map(str, get_args(hint))) + "}"
    kinds = {int: "N", float: "LR" if name == "lr" else "X", bool: "{true,false}"}
    return kinds.get(hint) or PLACES.get(name.rpartition("_")[2], "NAME")


def _help(setting: Field[Any], hint: Any, default: object) -> str:
    text = str(setting.metadata.get("help", f"{expected(hint).capitalize()}."))
    if default in (None, "", []):
        return text.replace("%", "%%")
    shown = ",".join(map(str, default)) if isinstance(default, list) else str(default)
    shown = shown.lower() if isinstance(default, bool) else shown
    return f"{text.removesuffix('.')} (default: {shown}).".replace("%", "%%")


def _epilog(recipe: Recipe[S], values: Table, named: str) -> str:
    """Return the end of --help: the tables of settings with their values, and the examples."""
    hints = get_type_hints(recipe.settings)
    lines: list[str] = []
    for setting in fields(recipe.settings):
        if is_table(hints[setting.name]):
            option = f"--{setting.name.replace('_', '-')}"
            lines.append(f"  {option}.KEY X: {setting.metadata.get('help', 'See conf/.')}")
            lines += [f"      {option}.{key} {_word(value)}" for key, value in values.get(setting.name, {}).items()]
    title = f"tables of settings, with the values of {named}:"
    if Flags in hints.values():
        lines.append("  A table of flags accepts every flag of its program; the program checks the flags.")
    examples = [f"  {recipe.program} {example}" for example in recipe.examples]
    return "\n".join([*([title, *lines, ""] if lines else []), "examples:", *examples])


def _word(value: object) -> str:
    """Return a value as it is written on the command line."""
    return str(value).lower() if isinstance(value, bool) else shlex.quote(str(value))
