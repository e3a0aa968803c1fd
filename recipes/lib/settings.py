"""Check or explain the settings of a recipe. recipe.sh runs this file with the settings on standard input.

python -m recipes.lib.settings RECIPE [--help-text | --dry-run] [--stack NAME] [--suffix TEXT] [--own FLAG=OPTION]

A recipe declares a setting as `NAME=VALUE  # HELP [TYPE]`. The type is `int`, `number`, `int 1..`, `number 0..1`,
a choice such as `a|b|DIR` (also FILE and PATH, which is a file or a folder), or `list` before one of these. After the
type, `if corpus=wmt18,DIR` means that the setting has no effect with other values of --corpus, and is then refused.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from fairseq_posenc.core.refusal import InputError
from fairseq_posenc.core.words import nearest, suggestion

from . import encodings
from .departures import flags
from .runs import settings

DECLARATION = re.compile(r"([a-z][a-z_]*)=[^#]*# (.*?)(?: \[([^]]+)\])?$")
OUTER_COMMA = re.compile(r",(?![^\[]*\])")  # a comma outside of brackets, such as the second in `shaw[a=8,b=1],rope`
KINDS = {"int": (int, "a whole number"), "number": (float, "a number")}
EXISTS = {"FILE": Path.is_file, "DIR": Path.is_dir, "PATH": Path.exists}
PLACES = {"FILE": "file", "DIR": "folder", "PATH": "file or folder"}
#: Flags of fairseq-train that recipe.sh writes itself, or whose files later steps read, and the option to give instead.
DECIDED = {
    "update-freq": "--batches",
    "cpu": "--device",
    "seed": "--seeds",
    **dict.fromkeys(("pos-enc", "pos-enc-args"), "--pos-enc"),
    **dict.fromkeys(("fp16", "bf16", "amp"), "--precision"),
    **dict.fromkeys(("save-dir", "no-save", "no-last-checkpoints", "checkpoint-suffix"), ""),
    **dict.fromkeys(("user-dir", "log-format", "restore-file"), ""),
    **{f"distributed-{name}": "--launch" for name in ("world-size", "port", "backend", "rank", "init-method")},
}


class Declared(NamedTuple):
    """Hold the help text of a setting, the type of its value, and the only values of another setting it is for."""

    about: str
    kind: str
    condition: str


def declared(recipe: Path) -> dict[str, Declared]:
    """Return the settings of all recipes, then those that the recipe declares before its first function or step."""
    found = {}
    for path in (Path(__file__).with_name("recipe.sh"), recipe):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("options") or "() {" in line:
                break
            if match := DECLARATION.match(line):
                kind, _, condition = f" {match[3] or ''}".partition(" if ")
                found[match[1]] = Declared(match[2], kind.strip(), condition)
    return found


def check(option: str, value: str, kind: str, *, look: bool = True) -> None:
    """Check a value of a setting. An empty value is right: the setting is not used.

    Args:
        look: Whether files and folders must exist.

    Raises:
        InputError: The value does not have the type; the message names the option.
    """
    name, _, limits = kind.partition(" ")
    if name == "list":
        for part in OUTER_COMMA.split(value):
            check(option, part, limits, look=look)
    elif value and name in KINDS:
        convert, words = KINDS[name]
        low, high = (limits or "..").split("..")
        try:
            wrong = (low and convert(value) < convert(low)) or (high and convert(value) > convert(high))
        except ValueError:
            wrong = True
        if wrong:
            raise InputError(f"{option} {value}: the value must be {words}{f' ({limits})' * bool(limits)}.")
    elif value and kind:
        choices = kind.split("|")
        if value in choices or any(not look or EXISTS[part](Path(value)) for part in choices if part in EXISTS):
            return
        names = [part for part in choices if part not in EXISTS]
        if len(names) < len(choices):
            place = " or ".join(PLACES[part] for part in choices if part in EXISTS)
            advice = " or ".join(["an existing one", *names]) + (suggestion(value, names) or ".")
            raise InputError(f"{option} {value}: there is no such {place}. Give {advice}")
        raise InputError(f"{option} {value}: the value must be one of {kind}{nearest(value, choices)}")


def check_effect(option: str, condition: str, known: dict[str, Declared], texts: dict[str, str]) -> None:
    """Refuse an option of the command line that has no effect with the value of another setting."""
    name, _, values = condition.partition("=")
    choices, wanted = known[name].kind.removeprefix("list ").split("|"), set(values.split(","))
    given = OUTER_COMMA.split(texts[name])
    if not any(value in wanted or (value not in choices and wanted & set(EXISTS)) for value in given):
        advice = f"It is for --{name} {values.replace(',', ' or ')}. Leave it out."
        raise InputError(f"{option} has no effect with --{name} {texts[name]}. {advice}")


def check_flags(words: list[str], own: dict[str, str]) -> None:
    """Refuse flags of fairseq-train that the recipe writes itself, because fairseq uses the last of two values."""
    for flag in flags(words):
        decided = {**DECIDED, **own}
        if flag in decided:
            advice = f"Give {decided[flag]} instead." if decided[flag] else "Leave this flag out."
            raise InputError(f"--train.{flag}: the recipe sets this flag itself. {advice}")


def check_processes(values: dict[str, str]) -> None:
    """Check that the settings of the processes fit together."""
    nodes, processes = int(values["nodes"]), int(values["nodes"]) * int(values["processes"])
    place = f"--nodes {nodes}"
    if int(values["batches"]) % processes:
        raise InputError(f"--batches {values['batches']}: {processes} processes need a multiple of {processes}.")
    if nodes > 1 and values["launch"] == "local":
        raise InputError(f"{place}: --launch local uses one machine only. Give --launch torchrun or slurm.")
    if nodes > 1 and values["launch"] == "torchrun" and not values["rendezvous"]:
        raise InputError(f"{place}: torchrun needs the first node's address. Give --rendezvous HOST:PORT.")


def steps(recipe: Path) -> list[str]:
    """Return the kinds of steps that a recipe and the files that it sources name, such as `train` and `score`."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(recipe.parent.glob("*.sh")))
    for name in re.findall(r"^source .*/lib/([a-z]+/[a-z]+\.sh)", text, re.MULTILINE):
        text += (Path(__file__).parent / name).read_text(encoding="utf-8")
    found = re.findall(r"\b(?:device_)?step \"?([a-z][a-z_-]*)[:\" ]", text)
    return sorted({*found, *(["train"] if re.search(r"\btrain \"", text) else [])})


def check_all(recipe: Path, values: dict[str, str | list[str]], args: argparse.Namespace) -> None:
    """Check all settings of a run."""
    texts = {name: value for name, value in values.items() if isinstance(value, str)}
    known = declared(recipe)
    for name, setting in known.items():
        option = f"--{name.replace('_', '-')}"
        if setting.condition and name in args.given.split():
            check_effect(option, setting.condition, known, texts)
        if name in texts:
            check(option, texts[name], setting.kind, look=not args.dry_run)
    check_processes(texts)
    train = values["train"]
    own = {"arch": "--arch"} if "arch" in texts else {}
    check_flags(train if isinstance(train, list) else [], own | dict(text.partition("=")[::2] for text in args.own))
    for label in filter(None, OUTER_COMMA.split(texts["pos_enc"])):
        encodings.check(label.removesuffix(args.suffix), args.stack)
    if (until := texts["until"]) and until not in (kinds := steps(recipe)):
        raise InputError(f"--until {until}: there is no such step{nearest(until, kinds)}")


def help_text(recipe: Path, folder: Path, values: dict[str, str | list[str]]) -> Iterator[str]:
    """Yield the lines of --help: the comments at the head of the recipe, and its settings with their values."""
    lines = (folder / "run.sh").read_text(encoding="utf-8").splitlines()[1:]
    yield from (line[2:] for line in lines[: next(n for n, line in enumerate(lines) if not line.startswith("#"))])
    yield f"presets: {' '.join(sorted(path.stem for path in (folder / 'conf').glob('*.sh')))}   (conf/)"
    for name, setting in declared(recipe).items():
        value, option = values[name], f"--{name.replace('_', '-')}"
        option, text = (f"{option}.FLAG", shlex.join(value)) if isinstance(value, list) else (option, value)
        kind = f"{setting.kind}{f' if {setting.condition}' * bool(setting.condition)}".strip()
        yield f"  {option:20s} {setting.about}{f' [{kind}]' * bool(kind)} ({text or 'none'})"
    yield "  --settings           print the settings of a preset and the other options"
    yield "  --dry-run            print the commands"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("recipe", type=Path, help="File that declares the settings.")
    add("--help-text", action="store_true", help="Print the recipe's --help.")
    add("--dry-run", action="store_true", help="Files and folders need not exist.")
    add("--given", default="", metavar="NAMES", help="Settings that the command line sets.")
    add("--stack", action="append", default=[], metavar="NAME", help="Stack in which the encodings must work.")
    add("--suffix", default="", metavar="TEXT", help="Text that may follow the name of an encoding.")
    add("--own", action="append", default=[], metavar="FLAG=OPTION", help="Further flag that the recipe sets itself.")
    args = parser.parse_args()
    values = settings(sys.stdin.read())
    if args.help_text:
        print("\n".join(help_text(args.recipe, Path(os.environ["HERE"]), values)))
        return
    try:
        check_all(args.recipe, values, args)
    except InputError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
