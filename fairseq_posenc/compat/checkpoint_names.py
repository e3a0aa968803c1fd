"""Check which classes fairseq builds from a checkpoint, because some of them would run its options as code.

fairseq builds the model, the task and the criterion that a checkpoint names, with the options in the checkpoint. Some
of fairseq's classes evaluate an option as Python code, pass it to a shell, or unpickle a file that it names. So only
the classes in `STOCK`, and classes that are not fairseq's own, are built. The options that fairseq evaluates for them
must be Python literals.
"""

from __future__ import annotations

import ast
import importlib
import shlex
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from ..core.refusal import InputError
from .checkpoints import CheckpointError, UnsafeCheckpointError
from .patching import replace

#: Names in fairseq whose options it does not run as code, except those that `EVALUATING` evaluates.
STOCK = {
    "model": frozenset(
        "transformer transformer_align transformer_lm lstm lstm_lm lightconv lightconv_lm bart roberta camembert "
        "gottbert xlmr".split()
    ),
    "task": frozenset(
        "translation translation_from_pretrained_bart language_modeling masked_lm multilingual_masked_lm denoising "
        "sentence_prediction sentence_ranking".split()
    ),
    "criterion": frozenset(
        "cross_entropy adaptive_loss label_smoothed_cross_entropy label_smoothed_cross_entropy_with_alignment "
        "masked_lm sentence_prediction sentence_ranking".split()
    ),
}
#: Modules of fairseq in which the classes in `STOCK` call `eval`; a test compares them with fairseq's source.
EVALUATING = ("fairseq.utils", "fairseq.models.transformer_lm", "fairseq.models.lightconv_lm")
#: Keys of the name of each part, in current configurations and in old ones.
_KEYS = {"model": ("_name", "arch"), "task": ("_name", "task"), "criterion": ("_name", "criterion")}
#: Whether a training loads the checkpoint: it builds only classes that its command line names.
_in_training = ContextVar("_in_training", default=False)


def mend() -> None:
    """Refuse a checkpoint that names other classes, and let fairseq evaluate literals only."""
    from fairseq import checkpoint_utils
    from fairseq.data.fasta_dataset import FastaDataset
    from fairseq.trainer import Trainer

    replace(checkpoint_utils, "load_checkpoint_to_cpu", _with_known_names)
    replace(Trainer, "load_checkpoint", _of_training)
    replace(FastaDataset, "_build_index", _without_shell)
    for name in EVALUATING:
        vars(importlib.import_module(name))["eval"] = literal


def _of_training(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    token = _in_training.set(True)
    try:
        return original(*args, **kwargs)
    finally:
        _in_training.reset(token)


def _with_known_names(original: Callable[..., Any], path: Any, *args: Any, **kwargs: Any) -> Any:
    """Load a checkpoint, and check the names in the configuration that fairseq made of its options."""
    try:
        state = original(path, *args, **kwargs)
        is_whole = isinstance(state["model"], Mapping) and (state.get("cfg") or state.get("args")) is not None
        problem = "it has no weights or no settings"
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        is_whole, problem = False, f"fairseq cannot read its parts ({type(error).__name__}: {error})"
    if not is_whole:
        raise CheckpointError(
            f"{path}: this is not a checkpoint of fairseq-train, because {problem}. Give a file that fairseq-train "
            "wrote."
        )
    if not _in_training.get():
        refuse_names(state.get("cfg"), path)
    return state


def refuse_names(configuration: Any, path: Any) -> None:
    """Raise UnsafeCheckpointError if fairseq's configuration names a class of fairseq that is not in `STOCK`."""
    names = [(part, name) for part in STOCK for name in _names(part, getattr(configuration, part, None))]
    refused = [f"the {part} {name!r}" for part, name in names if not _is_safe(part, name)]
    if not {_package(part, name) for part, name in names} <= {"fairseq", __name__.partition(".")[0], ""}:
        _evaluate_literals()
    if refused:
        raise UnsafeCheckpointError(
            f"{path}: the file is refused, because it names {' and '.join(dict.fromkeys(refused))}, whose options "
            "fairseq might run as code. If you know where the file comes from and trust it, run the command without "
            "--user-dir fairseq_posenc."
        )


def _names(part: str, settings: Any) -> list[str]:
    """Return every name that fairseq could read from a part of a configuration: model, task or criterion."""
    if settings is None or isinstance(settings, str):
        return [settings] if settings else []
    names = [str(name) for key in _KEYS[part] if (name := getattr(settings, key, None)) is not None]
    if not names and isinstance(settings, Mapping) and len(settings) == 1:
        return [str(next(iter(settings)))]  # {"fconv": {...}}: see fairseq.models.build_model
    return names


def _is_safe(part: str, name: str) -> bool:
    from fairseq.models import ARCH_MODEL_NAME_REGISTRY

    name = ARCH_MODEL_NAME_REGISTRY.get(name, name) if part == "model" else name
    return name in STOCK[part] or _package(part, name) != "fairseq"  # fairseq refuses to build what is not registered


def _package(part: str, name: str) -> str:
    """Return the package of the class that has this name; an empty text if no class has it."""
    from fairseq.criterions import CRITERION_REGISTRY
    from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_REGISTRY
    from fairseq.tasks import TASK_REGISTRY

    registry = {"model": MODEL_REGISTRY, "task": TASK_REGISTRY, "criterion": CRITERION_REGISTRY}[part]
    name = ARCH_MODEL_NAME_REGISTRY.get(name, name) if part == "model" else name
    return registry[name].__module__.partition(".")[0] if name in registry else ""


def _evaluate_literals() -> None:
    """Let all modules of fairseq read options as literals, because a user's class may inherit one that runs them."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "fairseq":
            vars(module)["eval"] = literal


def literal(text: Any) -> Any:
    """Return the value of a Python literal; this function replaces `eval` in fairseq.

    Raises:
        TypeError: `text` is not a string. fairseq relies on the TypeError that `eval` raises for such values.
        InputError: `text` is not a literal.
    """
    if not isinstance(text, str):
        raise TypeError(f"only a string can be evaluated, not {type(text).__name__}")
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise InputError(
            f"{text[:80]!r} was not evaluated: it is not a literal, and fairseq would run it as Python code. Write a "
            "number, a string, True, False or None, or a list, tuple or dictionary of these."
        ) from None


def _without_shell(original: Callable[..., Any], dataset: Any, path: str) -> Any:
    """Refuse a path with --dataset-impl fasta that a shell, to which fairseq passes it, would not read as one word."""
    if shlex.quote(path) != path:
        raise InputError(
            f"{path!r}: fairseq would pass this path to a shell. Rename the folder and its files so that the path has "
            "only letters, digits and '_-./', or use --dataset-impl mmap."
        )
    return original(dataset, path)
