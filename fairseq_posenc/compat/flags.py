"""Say what to give in place of a flag that a command does not have; argparse only says that it is unrecognized."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Collection, Iterator

from ..core.arguments import unknown
from ..core.words import suggestion

_STACKS = "layers embed-dim ffn-embed-dim attention-heads normalize-before layerdrop layers-to-keep output-dim".split()
#: Flags that set the same thing in different tasks and models.
_SAME = (
    ("--max-positions", "--tokens-per-sample", "--max-source-positions", "--max-target-positions"),
    ("--share-all-embeddings", "--share-decoder-input-output-embed"),
    *((f"--encoder-{name}", f"--decoder-{name}") for name in _STACKS),
)
_MOST = 3  # owners of a flag that are named
_PREFIX = "posenc_"
_COMMANDS = {"training": "fairseq-train", "generation": "fairseq-generate", "eval_lm": "fairseq-eval-lm"}


def advice(parser: argparse.ArgumentParser, message: str) -> str:
    """Return sentences about the unknown flags in an error message of a parser; an empty text if there are none."""
    return " ".join(filter(None, (_about(flag, _of_parser(parser)) for flag in unknown(message))))


def _about(flag: str, known: Collection[str]) -> str:
    same = [other for group in _SAME if flag in group for other in group if other in known]
    if same:
        return f"Give {', '.join(same[:-1])}{' and ' * (len(same) > 1)}{same[-1]} in place of {flag}."
    if owners := [*_owners(flag, known)]:
        owners.sort(key=lambda owner: _PREFIX not in owner)
        return f"{flag} is a flag of {', '.join(owners[:_MOST])}{' and others' if len(owners) > _MOST else ''}."
    hint = suggestion(flag.removeprefix("--"), [name.removeprefix("--") for name in known], "--")
    return f"{flag}{hint}" if hint else ""


def _owners(flag: str, known: Collection[str]) -> Iterator[str]:
    """Yield what has the flag, such as `fairseq-train` or `--task posenc_translation`."""
    from fairseq import options
    from fairseq.models import ARCH_MODEL_REGISTRY
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_REGISTRY

    for name, command in _COMMANDS.items():
        if flag in _of_parser(getattr(options, f"get_{name}_parser")()):
            yield command
            return
    architectures = {cls: name for name, cls in reversed(ARCH_MODEL_REGISTRY.items())}  # without presets
    kinds = {"task": TASK_REGISTRY, "arch": {name: cls for cls, name in architectures.items()}}
    kinds |= {name: registry["registry"] for name, registry in REGISTRIES.items()}
    for kind, classes in kinds.items():
        choice = f"--{kind.replace('_', '-')}"
        for name, cls in classes.items():
            if flag in of_class(cls):
                yield f"{choice} {name}" if choice in known else f"fairseq-train {choice} {name}"


def of_class(cls: type) -> set[str]:
    """Return the flags that a task, a model or another class adds to a command."""
    from fairseq.dataclass.utils import gen_parser_from_dataclass

    parser = argparse.ArgumentParser(add_help=False)
    with contextlib.suppress(Exception):  # some classes need flags of other classes, or packages that are missing
        if hasattr(cls, "add_args"):
            cls.add_args(parser)
        elif hasattr(cls, "__dataclass"):
            gen_parser_from_dataclass(parser, getattr(cls, "__dataclass")())
    return _of_parser(parser)


def _of_parser(parser: argparse.ArgumentParser) -> set[str]:
    return {option for action in parser._actions for option in action.option_strings}
