"""Load the settings of a run from a preset, --config FILE and the command line. Unknown settings are refused."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from .package import nearest
from .recipe import Recipe, S
from .values import Flags, Refused, expected, fits, is_table, read

Table = dict[str, Any]


def load(
    recipe: Recipe[S], preset: str | None = None, config: Path | None = None, texts: Mapping[str, str] | None = None
) -> S:
    """Return the settings of a run.

    Args:
        recipe: Recipe whose settings are loaded.
        preset: Name of the preset (default: the recipe's default preset).
        config: TOML file whose settings replace the settings of the preset.
        texts: Settings of the command line as text, keyed by names such as `seed` or `train.lr`; they replace
            the values of the preset and of `config`.

    Raises:
        Refused: A setting is unknown, missing or has a wrong value.
    """
    hints = get_type_hints(recipe.settings)
    values, in_config = from_files(recipe, preset, config)
    command_line = from_words(texts or {}, hints)
    merge(values, command_line, hints, "command line", recipe.settings.further_keys)
    for key, value in values.items():
        if not fits(value, hints[key]):
            raise Refused(f"{_option(key)} {value!r}: the value must be {expected(hints[key])}.")
    settings = recipe.settings(**values)
    settings.preset = preset or recipe.preset
    if settings.jobs < 1:
        raise Refused(f"--jobs {settings.jobs}: the value must be at least 1.")
    named = in_config | _names(command_line)
    if "seeds" in named and not settings.seeds:
        raise Refused("--seeds is empty. Give seeds such as 1,2,3, or leave the option out.")
    settings.refuse_unused(named)
    return settings


def from_files(recipe: Recipe[S], preset: str | None, config: Path | None) -> tuple[Table, set[str]]:
    """Return the settings of a preset, updated with the settings in `config`, and the names of the updated settings.

    Raises:
        Refused: The preset does not exist or lacks a setting, or a file has an unknown setting.
    """
    hints = get_type_hints(recipe.settings)
    name = preset or recipe.preset
    if name not in recipe.presets():
        raise Refused(f"--preset {name}: {recipe.conf} has no preset '{name}'{nearest(name, recipe.presets())}")
    path = recipe.conf / f"{name}.toml"
    values = known_only(read_preset(path), hints, str(path))
    _refuse_missing(recipe.settings, values, path)
    from_config = known_only(read_toml(config), hints, str(config)) if config is not None else {}
    merge(values, from_config, hints, str(config), recipe.settings.further_keys)
    return values, _names(from_config)


def _names(table: Table) -> set[str]:
    """Return the names of settings and, for a table, the names of its entries such as `train.lr`."""
    entries = {f"{key}.{entry}" for key, value in table.items() if isinstance(value, dict) for entry in value}
    return {*table, *entries}


def read_toml(path: Path) -> Table:
    """Read a TOML file.

    Raises:
        Refused: The file cannot be read.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"{path}: the file is not valid TOML: {error}") from error


def read_preset(path: Path, *extending: str) -> Table:
    """Return the settings of a preset. The preset's own settings replace the settings of the preset that its key
    `extends` names, and `false` leaves out a flag of that preset.

    Args:
        path: File of the preset. An extended preset must be in the same folder.
        extending: Names of the presets that extend this preset; the first one extends it directly.

    Raises:
        Refused: The extended preset does not exist, or presets extend each other in a circle.
    """
    own = read_toml(path)
    name = own.pop("extends", None)
    if name is None:
        return own
    others = sorted(other.stem for other in path.parent.glob("*.toml") if other != path)
    if name not in others:
        raise Refused(f"{path}: extends = {name!r} does not name a preset of the folder{nearest(str(name), others)}")
    chain = (path.stem, *extending)
    if name in chain:
        raise Refused(f"{path}: extends = {name!r}: the presets {name} and {path.stem} extend each other.")
    base = read_preset(path.with_name(f"{name}.toml"), *chain)
    tables = {key: _extended(base[key], value) for key, value in own.items() if _are_tables(base.get(key), value)}
    return {**base, **own, **tables}


def _extended(base: Table, own: Table) -> Table:
    return {key: value for key, value in {**base, **own}.items() if value is not False}


def _are_tables(*values: object) -> bool:
    return all(isinstance(value, dict) for value in values)


def known_only(table: Table, hints: Table, where: str) -> Table:
    """Return the table with `_` instead of `-` in its keys, and refuse unknown settings."""
    known: Table = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in hints:
            raise Refused(f"{where}: unknown setting '{key}'{nearest(name, hints)}")
        known[name] = value
    return known


def _refuse_missing(kind: type, values: Table, path: Path) -> None:
    for setting in fields(kind):
        if setting.name not in values and setting.default is MISSING and setting.default_factory is MISSING:
            raise Refused(f"{path}: the setting '{setting.name}' is missing. Every preset must contain this setting.")


def merge(
    values: Table, newer: Table, hints: Table, where: str, further: Mapping[str, Iterable[str]] | None = None
) -> None:
    """Replace values by newer values, and merge tables key by key. A key of a table is refused if neither
    the preset nor `further` has it. Tables of flags accept all keys, because a preset contains only some of a program's
    flags.
    """
    for name, value in newer.items():
        if not is_table(hints[name]) or not isinstance(value, dict):
            values[name] = value
            continue
        known = values.get(name, {})  # empty if the preset does not contain the table
        allowed = {*known, *(further or {}).get(name, ())}
        for key in value:
            if key not in allowed and hints[name] != Flags:
                raise Refused(f"{where}: unknown setting '{name}.{key}'{nearest(key, allowed, name + '.')}")
        values[name] = {**known, **value}


def from_words(texts: Mapping[str, str], hints: Table) -> Table:
    """Convert settings that the command line gives as text to values of the declared types."""
    values: Table = {}
    for name, text in texts.items():
        table, _, key = name.partition(".")
        hint = get_args(hints[table])[1] if key else hints[table]
        try:
            value = read(text, hint)
        except ValueError as error:
            raise Refused(f"{_option(name)} {text}: the value must be {expected(hint)}.") from error
        if key:
            values.setdefault(table, {})[key] = value
        else:
            values[table] = value
    return values


def _option(name: str) -> str:
    table, dot, key = name.partition(".")
    return f"--{table.replace('_', '-')}{dot}{key}"


def as_arguments(flags: Flags) -> list[str]:
    """Return flags as words of a command: `{"beam": 4, "cpu": True}` becomes `--beam 4 --cpu`. False flags are left
    out.
    """
    words: list[str] = []
    for name, value in flags.items():
        if value is True:
            words.append(f"--{name}")
        elif value is not False:
            words += [f"--{name}", str(value)]
    return words
