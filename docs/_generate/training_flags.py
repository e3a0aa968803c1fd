"""List the flags that the plugin adds to fairseq's commands, for the table of docs/training.md.

The rows come from the dataclasses from which fairseq makes its flags.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fairseq_posenc.compat.registration import register

#: The page that says more about a flag.
DETAILS = {
    "--pos-enc": "encodings/index.md",
    "--pos-enc-args": "encodings/index.md#options",
    "--pos-enc-encoder": "#name-an-encoding-and-its-options",
    "--pos-enc-log-interval": "#watch-the-attention",
    "--pos-enc-no-decay": "encodings/index.md",
    "--pos-enc-path": "speed.md#paths",
    "--pos-enc-random": "positions.md",
    "--attend-within": "masked-lm.md",
    "--encoder-from": "question-generation.md#the-model",
    "--mem-length": "language-models.md",
    "--metrics": "fine-tuning.md",
    "--pretrained": "fine-tuning.md#glue-with-fairseqs-commands",
    "--rouge-variant": "question-generation.md",
    "--segments": "fine-tuning.md",
}
MAIN = "posenc_transformer"  # the model whose help texts and defaults come first


class Flag(NamedTuple):
    """Hold the description of a flag.

    Args:
        owners: What has the flag, such as `--task posenc_lm_memory`.
        defaults: Its different defaults, in the order of the owners.
    """

    name: str
    owners: list[str]
    defaults: list[Any]
    help: str


def table() -> str:
    """Return a table of the flags that the plugin adds to fairseq; those of the encodings come first."""
    own = sorted(all_flags(), key=lambda flag: (not flag.name.startswith("--pos-enc"), flag.name))
    lines = [[f"`{flag.name}`", _owners(flag), _defaults(flag), _meaning(flag)] for flag in own]
    head = [["flag", "of", "default", "meaning"], ["---"] * 4]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [*head, *lines])  # unpadded, because texts are long


def all_flags() -> list[Flag]:
    """Return the flags that the plugin adds, and the flags of fairseq to which it gives another meaning."""
    found: dict[str, Flag] = {}
    classes = [*_classes()]
    for owner, _, options in sorted(classes, key=lambda row: MAIN not in row[0]):
        if options is None or not options.__module__.startswith("fairseq_posenc."):
            continue
        for field in dataclasses.fields(options):
            # Options of fairseq were not made by `core.options.option`; the data folder is not a flag.
            if "elsewhere" not in field.metadata or field.name == "data":
                continue
            name = f"--{field.name.replace('_', '-')}"
            flag = found.setdefault(name, Flag(name, [], [], field.metadata["help"]))
            flag.owners.append(owner)
            flag.defaults.extend([field.default] if field.default not in flag.defaults else [])
    theirs = {name for _, cls, _ in classes if cls.__module__.startswith("fairseq.") for name in _flags_of(cls)}
    return [flag for name, flag in found.items() if name in DETAILS or name not in theirs]


def _classes() -> Iterator[tuple[str, type, type | None]]:
    """Yield each registered class with the flag that chooses it, and the dataclass of its options."""
    register()
    from fairseq.models import MODEL_DATACLASS_REGISTRY, MODEL_REGISTRY
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY

    kinds: dict[str, tuple[Mapping[str, type], Mapping[str, type]]] = {
        "arch": (MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY),
        "task": (TASK_REGISTRY, TASK_DATACLASS_REGISTRY),
    }
    kinds |= {kind: (parts["registry"], parts["dataclass_registry"]) for kind, parts in REGISTRIES.items()}
    for kind, (classes, options) in kinds.items():
        for name, cls in classes.items():
            if isinstance(cls, type):
                yield f"--{kind.replace('_', '-')} {name}", cls, options.get(name)


def _flags_of(cls: type) -> set[str]:
    """Return the flags that a class of fairseq adds to a command."""
    from fairseq.dataclass.utils import gen_parser_from_dataclass

    parser = argparse.ArgumentParser(add_help=False)
    with contextlib.suppress(Exception):  # some classes need flags of other classes, or packages that are missing
        if hasattr(cls, "add_args"):
            cls.add_args(parser)
        elif hasattr(cls, "__dataclass"):
            gen_parser_from_dataclass(parser, getattr(cls, "__dataclass")())
    return {option for action in parser._actions for option in action.option_strings}


def _owners(flag: Flag) -> str:
    models = [owner for owner in flag.owners if owner.startswith("--arch")]
    if flag.name.startswith("--pos-enc") and len(models) > 2:
        return "all models"
    return ", ".join(f"`{owner}`" if owner.startswith("--") else owner for owner in flag.owners)


def _defaults(flag: Flag) -> str:
    words = {"None": "unset", "False": "off"}
    return " or ".join(words.get(str(value), f"`{value}`") for value in flag.defaults)


def _meaning(flag: Flag) -> str:
    page = DETAILS.get(flag.name)
    return flag.help.replace("|", r"\|") + (f" [More]({page})" if page else "")
