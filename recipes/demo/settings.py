"""The settings of a run: one TOML file of conf/, and what the command line overrides."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

CONF = Path(__file__).parent / "conf"
Flags = dict[str, str | int | float | bool]


@dataclass
class Settings:
    encodings: list[str]
    seed: int
    jobs: int
    least_gap: float
    corpus: dict[str, int]
    subwords: dict[str, int]
    train: Flags
    generate: Flags


def presets() -> list[str]:
    return sorted(path.stem for path in CONF.glob("*.toml"))


def load(preset: str, encodings: str | None = None, seed: int | None = None) -> Settings:
    """The preset's settings; a key that is missing or unknown is an error, never ignored."""
    path = CONF / f"{preset}.toml"
    given: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    known = {field.name for field in fields(Settings)}
    if given.keys() != known:
        unknown, missing = sorted(given.keys() - known), sorted(known - given.keys())
        raise SystemExit(f"error: {path}: unknown settings {unknown}, missing settings {missing}")
    settings = Settings(**given)
    if encodings is not None:
        settings.encodings = [name for name in encodings.split(",") if name]
    if seed is not None:
        settings.seed = seed
    # Everything is told relative to `none`: the BLEU, the parameters, the time of a step.
    settings.encodings = list(dict.fromkeys(["none", *settings.encodings]))
    return settings


def as_arguments(flags: Flags) -> list[str]:
    """`{"beam": 4, "cpu": true}` as `--beam 4 --cpu`; a false flag is left out."""
    words: list[str] = []
    for name, value in flags.items():
        if value is True:
            words.append(f"--{name}")
        elif value is not False:
            words += [f"--{name}", str(value)]
    return words
