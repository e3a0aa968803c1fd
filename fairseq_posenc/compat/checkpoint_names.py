"""Check that the names and options in a checkpoint's configuration cannot run code.

fairseq builds the model, the task and the criterion that a checkpoint names, with the options in the checkpoint. Some
of these classes evaluate an option as Python code, pass it to a shell, or unpickle a file that the option names. So a
checkpoint may name only models, tasks and criterions of this package or of the lists in this file. Options that fairseq
evaluates as Python code must be literals. This file works without fairseq.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .literals import literal

FLAG = "--allow-checkpoint-names"
#: Environment variable that the flag sets, so that processes started later also read it. It can be set for commands
#: without the flag.
VARIABLE = "FAIRSEQ_POSENC_ALLOW_CHECKPOINT_NAMES"
_PACKAGE = __name__.partition(".")[0]

#: Names in fairseq whose options it does not run as code, except those in `EVALUATED`, which must be literals.
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
#: Options that these models evaluate; a test compares them with fairseq's source.
EVALUATED = frozenset(
    "adaptive_softmax_cutoff adaptive_input_cutoff character_filters decoder_attention xformers_att_config".split()
)
#: Criterions of this plugin whose names do not begin with its prefix.
_OWN = frozenset({"squad", "question_generation"})
#: Options of old checkpoints that fairseq writes into a Hydra override as they are (dataclass/utils.py:270).
REGISTRIES = frozenset("bpe criterion lr_scheduler optimizer scoring tokenizer".split())
#: Interpolations of OmegaConf; Hydra removes backslashes before them.
_INTERPOLATION = re.compile(r"\$\\*\{")
#: Keys that hold the name of each part, in current configurations and in old ones.
_NAME_KEYS = {"model": ("_name", "arch"), "task": ("_name", "task"), "criterion": ("_name", "criterion")}

_allowed_meanwhile: list[str] = []
_ANY = "any name"


def add_flag(parser: argparse.ArgumentParser) -> None:
    """Add a flag to the parser of a command: it allows checkpoints to name further models, tasks and criterions."""
    parser.add_argument(
        FLAG,
        metavar="A,B",
        help="Additional models, tasks and criterions that checkpoints may name, separated by commas. fairseq might "
        "run their options as code, so use this flag only for files that you trust. Default: none.",
    )


def allow(names: str) -> None:
    """Allow these comma-separated names in this process and in the processes that it starts."""
    os.environ[VARIABLE] = ",".join(filter(None, (os.environ.get(VARIABLE), names)))


@contextlib.contextmanager
def allowing(names: Iterable[str]) -> Iterator[None]:
    """Allow these names inside a `with` block."""
    before = list(_allowed_meanwhile)
    _allowed_meanwhile.extend(names)
    try:
        yield
    finally:
        _allowed_meanwhile[:] = before


def allowing_all() -> contextlib.AbstractContextManager[None]:
    """Allow every name inside a `with` block, which must not build anything from a checkpoint's configuration."""
    return allowing([_ANY])


def named(configuration: Any) -> list[tuple[str, str]]:
    """Return the parts that a configuration names, as pairs such as ("model", "posenc_transformer").

    Args:
        configuration: fairseq's nested configuration, or the flat options of old checkpoints (a Namespace).
    """
    settings = _mapping(configuration)
    if isinstance(configuration, argparse.Namespace):
        flat = {"model": "arch", "task": "task", "criterion": "criterion"}
        return [(part, str(settings[key])) for part, key in flat.items() if settings.get(key) is not None]
    return [(part, name) for part in STOCK for name in _names_of(part, settings.get(part))]


def offence(state: Any) -> str | None:
    """Return which part of a checkpoint's configuration could run code, and what to do; None if no part could."""
    if not isinstance(state, Mapping):
        return None
    configurations = [state[key] for key in ("cfg", "args") if state.get(key) is not None]
    try:
        for configuration in configurations:
            for option, value in _values(configuration):
                if reason := _refused_value(option, value):
                    return f"{option} = {str(value)[:80]!r} in its configuration, {reason}"
    except RecursionError:
        return "a configuration that contains itself"
    pairs = (pair for configuration in configurations for pair in named(configuration))
    refused = dict.fromkeys(pair for pair in pairs if not _is_allowed(*pair))
    return _refused_names([*refused]) if refused else None


def _mapping(settings: Any) -> Mapping[str, Any]:
    if isinstance(settings, argparse.Namespace):
        return vars(settings)
    return settings if isinstance(settings, Mapping) else {}


def _names_of(part: str, settings: Any) -> list[str]:
    """Return every name that fairseq could read from a part of a configuration: model, task or criterion."""
    if isinstance(settings, str):
        return [settings]
    values = _mapping(settings)
    names = [str(values[key]) for key in _NAME_KEYS[part] if values.get(key) is not None]
    if not names and len(values) == 1:  # {"fconv": {...}}: see fairseq.models.build_model
        names = [str(next(iter(values)))]
    return names


def _is_allowed(part: str, name: str) -> bool:
    allowed = {*_allowed_meanwhile, *os.environ.get(VARIABLE, "").split(",")}
    if _ANY in _allowed_meanwhile or (name and name in allowed):
        return True
    registered = _registered(part, name)
    if registered is None:  # Nothing is built, or nothing that is not registered.
        return not _builds() and (name in STOCK[part] | _OWN or name.startswith("posenc_"))
    stock_name, cls = registered
    return stock_name in STOCK[part] or cls.__module__.startswith(f"{_PACKAGE}.")


def _builds() -> bool:
    """Return whether fairseq may build classes of this package, that is, whether they are registered with it."""
    return f"{_PACKAGE}.models" in sys.modules


def _registered(part: str, name: str) -> tuple[str, type] | None:
    """Return the name and the class of a model, task or criterion as fairseq has registered them.

    If `name` is an architecture, return the name and the class of its model. Return None if nothing is registered
    under `name`.
    """
    if not _builds():
        return None
    from fairseq.criterions import CRITERION_REGISTRY
    from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_REGISTRY
    from fairseq.tasks import TASK_REGISTRY

    registry = {"model": MODEL_REGISTRY, "task": TASK_REGISTRY, "criterion": CRITERION_REGISTRY}[part]
    name = ARCH_MODEL_NAME_REGISTRY.get(name, name) if part == "model" else name
    return (name, registry[name]) if name in registry else None


def _refused_names(refused: list[tuple[str, str]]) -> str:
    reasons = " and ".join(f"the {part} {name!r}, {_why(part, name)}" for part, name in refused)
    names = ",".join(name for _, name in refused)
    return (
        f"{reasons}. If you know where the file comes from and trust it, add {FLAG} {names}. For commands without that "
        f"flag, set the environment variable {VARIABLE}={names}"
    )


def _why(part: str, name: str) -> str:
    if _builds() and _registered(part, name) is None:
        return "which is not registered here (perhaps its --user-dir is missing)"
    return f"which is not on the list of {part}s whose options are known to be safe"


def _values(settings: Any, option: str = "configuration") -> Iterator[tuple[str, Any]]:
    """Yield the name and value of each option, at any depth, if its value is text or a mapping with attributes."""
    if isinstance(settings, argparse.Namespace) or (isinstance(settings, Mapping) and not _has_attributes(settings)):
        for key, value in _mapping(settings).items():
            yield from _values(value, str(key))
    elif isinstance(settings, list | tuple):
        for value in settings:
            yield from _values(value, option)
    elif isinstance(settings, str | Mapping):
        yield option, settings


def _has_attributes(settings: object) -> bool:
    """Return whether a mapping has attributes, which fairseq would read; a pickled OrderedDict can have them."""
    return bool(getattr(settings, "__dict__", None))


def _refused_value(option: str, value: Any) -> str | None:
    if not isinstance(value, str):
        return f"which is a {type(value).__name__} with attributes"
    if option == "configuration":
        return "which should be a mapping of options"
    if _INTERPOLATION.search(value):
        return "in which OmegaConf would insert a value, for instance that of an environment variable"
    if option in REGISTRIES and not re.fullmatch(r"\w*", value):
        return "which is not a name"
    if option == "dataset_impl" and value.rpartition(".")[2] == "fasta":
        return "with which fairseq would pass file names to a shell"
    if option in EVALUATED and value:
        try:
            literal(value)
        except ValueError:
            return "which fairseq would run as Python code"
    return None
