"""The settings of a run: a preset, then --config FILE, then the command line. Nothing unknown is ignored."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from .package import nearest
from .recipe import Recipe, S
from .values import Flags, Refused, fits, is_table, read, wanted

Table = dict[str, Any]


def load(
    recipe: Recipe[S], preset: str | None = None, config: Path | None = None, given: Mapping[str, str] | None = None
) -> S:
    """`given` holds the command line's: `seed` or `train.lr`, as text."""
    hints = get_type_hints(recipe.settings)
    name = preset or recipe.preset
    if name not in recipe.presets():
        raise Refused(f"no preset '{name}' in {recipe.conf}{nearest(name, recipe.presets())}")
    path = recipe.conf / f"{name}.toml"
    values = known_only(read_preset(path), hints, str(path))
    _refuse_missing(recipe.settings, values, path)
    theirs = known_only(read_toml(config), hints, str(config)) if config is not None else {}
    asked = from_words(given or {}, hints)
    merge(values, theirs, hints, str(config))
    merge(values, asked, hints, "the command line")
    for key, value in values.items():
        if not fits(value, hints[key]):
            raise Refused(f"{_option(key)} is {value!r}: {wanted(hints[key])} is wanted")
    settings = recipe.settings(**values)
    settings.preset = name
    if settings.jobs < 1:
        raise Refused(f"--jobs is {settings.jobs}: 1 or more is wanted")
    settings.refuse_unused({*theirs, *asked})
    return settings


def read_toml(path: Path) -> Table:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"{path} is no TOML: {error}") from error


def read_preset(path: Path, *extending: str) -> Table:
    """Return the settings of a preset: those of the preset that it names as `extends`, with its own in their place.

    Args:
        path: the preset's file; presets extend others of their folder.
        extending: the presets that extend this one, the last first.
    Raises:
        Refused: a preset that is not there, or that extends itself.
    """
    own = read_toml(path)
    name = own.pop("extends", None)
    if name is None:
        return own
    others = sorted(other.stem for other in path.parent.glob("*.toml") if other != path)
    if name not in others:
        raise Refused(f"{path}: extends = {name!r} is no other preset of the folder{nearest(str(name), others)}")
    chain = (path.stem, *extending)
    if name in chain:
        raise Refused(f"{path}: extends = {name!r}, which extends {path.stem} in turn: a preset cannot extend itself")
    base = read_preset(path.with_name(f"{name}.toml"), *chain)
    tables = {key: {**base[key], **value} for key, value in own.items() if _are_tables(base.get(key), value)}
    return {**base, **own, **tables}


def _are_tables(*values: object) -> bool:
    return all(isinstance(value, dict) for value in values)


def known_only(table: Table, hints: Table, where: str) -> Table:
    """The table with `_` for `-` in its keys: both spellings are the same."""
    known: Table = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in hints:
            raise Refused(f"{where}: unknown setting '{key}'{nearest(name, hints)}")
        known[name] = value
    return known


def _refuse_missing(kind: type, values: Table, path: Path) -> None:
    for one in fields(kind):
        if one.name not in values and one.default is MISSING and one.default_factory is MISSING:
            raise Refused(f"{path}: the setting '{one.name}' is missing")


def merge(values: Table, newer: Table, hints: Table, where: str) -> None:
    """Tables are merged key by key. A new key is right only for Flags: their program knows more of them."""
    for name, value in newer.items():
        if not is_table(hints[name]) or not isinstance(value, dict):
            values[name] = value
            continue
        known = values.get(name, {})  # none of a table that no preset has to have
        for key in value:
            if key not in known and hints[name] != Flags:
                raise Refused(f"{where}: unknown setting '{name}.{key}'{nearest(key, known, name + '.')}")
        values[name] = {**known, **value}


def from_words(given: Mapping[str, str], hints: Table) -> Table:
    values: Table = {}
    for name, text in given.items():
        table, _, key = name.partition(".")
        hint = get_args(hints[table])[1] if key else hints[table]
        try:
            value = read(text, hint)
        except ValueError as error:
            raise Refused(f"{_option(name)} is '{text}': {wanted(hint)} is wanted") from error
        if key:
            values.setdefault(table, {})[key] = value
        else:
            values[table] = value
    return values


def _option(name: str) -> str:
    table, dot, key = name.partition(".")
    return f"--{table.replace('_', '-')}{dot}{key}"


def as_arguments(flags: Flags) -> list[str]:
    """`{"beam": 4, "cpu": true}` as `--beam 4 --cpu`; a false flag is left out."""
    words: list[str] = []
    for name, value in flags.items():
        if value is True:
            words.append(f"--{name}")
        elif value is not False:
            words += [f"--{name}", str(value)]
    return words
