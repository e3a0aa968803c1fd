"""End a command with one line if its flags or files are refused, and refuse flags that fairseq misreads.

fairseq prints a traceback of 50 to 180 lines above the one line that says what to change. The environment variable
FAIRSEQ_POSENC_DEBUG=1 shows the traceback.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from ..core.reading import NotTextError, colon_problem
from ..core.refusal import InputError, RefusedError
from ..core.words import visible
from ..core.writing import NoSpaceError
from .patching import replace

DEBUG = "FAIRSEQ_POSENC_DEBUG"
#: A missing file, and two errors of files that are also used without this package.
_REFUSALS = (RefusedError, FileNotFoundError, NoSpaceError, NotTextError)
#: fairseq's tasks, besides those of this package, whose data are a folder that fairseq-preprocess wrote.
_OF_FOLDERS = ("translation", "language_modeling", "masked_lm", "sentence_prediction")


def mend() -> None:
    """Refuse precisions that the device cannot compute with, before anything is trained."""
    from fairseq.trainer import Trainer

    replace(Trainer, "__init__", _with_precision)


def debugging() -> bool:
    """Return whether the user wants to see tracebacks."""
    return os.environ.get(DEBUG, "") not in ("", "0")


@contextmanager
def in_one_line() -> Iterator[None]:
    """End the process with one line if an error refuses the user's input; other errors keep their traceback."""
    try:
        yield
    except Exception as error:
        refusal = error if is_refusal(error) else _of_child(error)
        if debugging() or refusal is None:
            raise
        sys.stdout.flush()
        raise SystemExit(f"{Path(sys.argv[0]).name}: error: {visible(refusal)}") from None


def is_refusal(error: BaseException) -> bool:
    """Return whether an error refuses what the user gave; every other error is a fault of a program."""
    return isinstance(error, _REFUSALS)


def _of_child(error: BaseException) -> str | None:
    """Return the message of a refusal in a process that fairseq spawned for a GPU; None if it was another error.

    The error of torch.multiprocessing holds the traceback of the process as text, whose last part begins with the name
    of the class.
    """
    if type(error).__name__ != "ProcessRaisedException":
        return None
    _, _, end = str(error).rpartition('\n  File "')
    described = re.search(r"^(?:([\w.]+)\.)?(\w+): (.+)", end, re.MULTILINE | re.DOTALL)
    if described is None:
        return None
    module, name, message = described.groups(default="builtins")
    cls = getattr(sys.modules.get(module), name, None)
    return message.strip() if isinstance(cls, type) and issubclass(cls, _REFUSALS) else None


def refuse_missing_data(cfg: Any) -> None:
    """Raise an error if a folder of the data does not exist; fairseq's own error does not say what is missing."""
    task = getattr(cfg, "task", None)
    name, data = getattr(task, "_name", None), getattr(task, "data", None)
    if not isinstance(data, str) or not (str(name).startswith("posenc_") or name in _OF_FOLDERS):
        return
    refuse_colon("the data folder", data)
    for folder in data.split(os.pathsep):
        if folder and not Path(folder).exists():
            several = f" fairseq splits the path {data} at {os.pathsep!r}." if folder != data else ""
            raise FileNotFoundError(
                f"the data folder {folder} does not exist. Give a folder that fairseq-preprocess wrote.{several}"
            )


def refuse_colons(namespace: Any) -> None:
    """End the command if fairseq would split the path of its data or its model; see `refuse_colon`."""
    for name, what in (("data", "the data folder"), ("path", "--path")):
        try:
            refuse_colon(what, getattr(namespace, name, None))
        except InputError as error:
            fail(str(error))


def refuse_colon(what: str, path: Any) -> None:
    """Raise InputError if a path that exists contains a colon, at which fairseq splits paths."""
    if isinstance(path, str) and (problem := colon_problem(path)) and Path(path).exists():
        raise InputError(f"{what} {path}: {problem}")


def _with_precision(original: Any, trainer: Any, cfg: Any, *args: Any, **kwargs: Any) -> None:
    refuse_precision(getattr(cfg, "common", cfg))  # old scripts give a flat namespace
    original(trainer, cfg, *args, **kwargs)


def refuse_precision(common: Any) -> None:
    """Raise ValueError if the options `common` of fairseq ask for a precision that works on a GPU only."""
    import torch

    if not common.cpu and torch.cuda.is_available():
        return
    where = "with --cpu" if common.cpu else "because torch finds no GPU"
    if common.amp:
        raise InputError(f"--amp has no effect {where}. Leave it out, or give --bf16.")
    if common.fp16 and not (common.fp16_no_flatten_grads or common.memory_efficient_fp16):
        cpu = "" if common.cpu else "--cpu "
        cure = f"Give {cpu}--fp16-no-flatten-grads or --bf16, or leave --fp16 out."
        reason = "because fairseq then copies all gradients into one tensor on a GPU"
        raise InputError(f"--fp16 alone does not work {where}, {reason}. {cure}")


def refuse_arch(words: Sequence[str]) -> None:
    """End the command if it gives --pos-enc to an architecture of fairseq, which has no such flag."""
    flag = next((word for word in words if word.startswith("--pos-enc")), None)
    arch = _value(words, "--arch") or _value(words, "-a")
    if flag is None or arch is None:
        return
    from fairseq.models import ARCH_MODEL_REGISTRY

    model = ARCH_MODEL_REGISTRY.get(arch)
    if model is None or model.__module__.partition(".")[0] != "fairseq":  # also a user's preset of our models
        return
    known = [name for name in ARCH_MODEL_REGISTRY if name.startswith("posenc_")]
    like = f"posenc_{arch}"
    cure = f"--arch {like}" if like in known else f"one of: {', '.join(sorted(known))}"
    fail(f"--arch {arch} has no {flag.partition('=')[0]}, because it is an architecture of fairseq. Give {cure}.")


def _value(words: Sequence[str], flag: str) -> str | None:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == flag:
            return following
        if word.startswith(f"{flag}="):
            return word.partition("=")[2]
    return None


def fail(message: str) -> NoReturn:
    """End the command with one line; argparse would also print the usage, which has 170 lines."""
    print(f"{Path(sys.argv[0]).name}: error: {visible(message)}", file=sys.stderr)
    raise SystemExit(2)
