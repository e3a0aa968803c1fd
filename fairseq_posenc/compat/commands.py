"""Mend flags of fairseq's commands, and end a command with one line if its flags or files are refused.

fairseq prints a traceback of 50 to 180 lines above the one line that says what to change. The environment variable
FAIRSEQ_POSENC_DEBUG=1 shows the traceback.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import torch

from ..core.arguments import unknown, with_choice
from ..core.reading import NotTextError
from ..core.refusal import InputError, RefusedError, described
from ..core.words import suggestion, visible
from ..core.writing import NoSpaceError
from . import generation
from .patching import replace, running, say_once

logger = logging.getLogger(__name__)

DEBUG = "FAIRSEQ_POSENC_DEBUG"
#: Besides our own class, errors about files, and two errors of files that are also used without this package.
_REFUSALS = (
    *(RefusedError, NoSpaceError, NotTextError),
    *(FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError),
)
#: fairseq's errors of other classes if there is no file of --path or of --finetune-from-model (checkpoint_utils.py).
_MISSING = re.compile(r"Model file not found: |--finetune-from-model .* does not exist$")
_PACKAGE = Path(__file__).resolve().parents[1]


def mend() -> None:
    """Mend --bf16, --user-dir and the start of several processes, and hide warnings that users cannot act on.

    Hydra warns in 20 lines, and torch about autocast in fairseq.
    """
    from fairseq import options, utils
    from fairseq.distributed import utils as distributed

    replace(options, "parse_args_and_arch", _as_meant)
    replace(utils, "import_user_module", _of_one_copy)
    replace(distributed, "call_main", _of_some_processes)
    warnings.filterwarnings("ignore", category=UserWarning, module=r"hydra\.")
    warnings.filterwarnings("ignore", message=r"\s*'config' is validated against ConfigStore", category=UserWarning)
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"fairseq\.")


# -- refusals


def debugging() -> bool:
    """Return whether the user wants to see tracebacks."""
    return os.environ.get(DEBUG, "") not in ("", "0")


@contextmanager
def in_one_line() -> Iterator[None]:
    """End the process with one line if an error refuses the user's input; other errors keep their traceback."""
    try:
        yield
    except (*_REFUSALS, OSError, ValueError) as error:
        if debugging() or not (isinstance(error, _REFUSALS) or _MISSING.match(str(error))):
            raise
        sys.stdout.flush()
        raise SystemExit(f"{Path(sys.argv[0]).name}: error: {visible(described(error))}") from None


def _without_usage(parser: argparse.ArgumentParser, message: str) -> NoReturn:
    """End the command with one line; argparse would also print the usage, which has 170 lines."""
    known = [option.lstrip("-") for action in parser._actions for option in action.option_strings]
    # fairseq has so many flags that one of them always resembles the word a little.
    hints = (f"{flag}{suggestion(flag.lstrip('-'), known, '--', cutoff=0.6)}" for flag in unknown(message))
    hint = next((hint for hint in hints if ";" in hint), "")
    if any(flag.startswith("--pos-enc") for flag in unknown(message)):
        hint += " Only architectures whose names begin with posenc_ have the flags --pos-enc."
    line = " ".join(filter(None, (f"{with_choice(message.rstrip('.'))}.", hint.strip(), "--help lists the flags.")))
    print(f"{Path(sys.argv[0]).name}: error: {visible(line)}", file=sys.stderr)
    raise SystemExit(2)


# -- flags


def _as_meant(
    original: Callable[..., Any], parser: Any, input_args: list[str] | None = None, *args: Any, **kwargs: Any
) -> Any:
    """Parse a command line. `--bf16` means bfloat16; fairseq takes it for `--tpu` (options.py:200)."""
    _hide_debug_messages()
    if (generate := running("fairseq_cli.generate")) is not None:  # unlike other commands, it skips `call_main`
        replace(generate, "main", _of_generate)
    words = sys.argv[1:] if input_args is None else input_args
    if not debugging():
        parser.error = partial(_without_usage, parser)
    parsed = original(parser, input_args, *args, **kwargs)
    namespace = parsed[0] if isinstance(parsed, tuple) else parsed
    if getattr(namespace, "bf16", False) and "--tpu" not in words:
        say_once(logger, "--bf16 means bfloat16 on this device; fairseq would require a TPU")
        namespace.tpu = False
    generation.adopt_limits(namespace, words)
    if problem := generation.unknown_word_problem(namespace):
        parser.error(problem)
    return parsed


def _hide_debug_messages() -> None:
    """Hide debug messages in fairseq's commands, and a warning of torch on machines without a GPU.

    Importing fairseq sets the root logger to DEBUG (models/wav2vec/wav2vec2_classification.py:25), so the level INFO
    that fairseq-generate and fairseq-interactive ask for later has no effect. LOGLEVEL=DEBUG still shows the messages.
    """
    root = logging.getLogger()
    if root.level == logging.DEBUG and "LOGLEVEL" not in os.environ:
        root.setLevel(logging.INFO)
    # fairseq always asks for pinned memory (data/iterators.py:509), which needs a GPU.
    warnings.filterwarnings("ignore", message="'pin_memory' argument is set as true but no accelerator is found")


def _of_generate(original: Callable[..., Any], cfg: Any, **kwargs: Any) -> Any:
    with in_one_line():
        return original(cfg, **kwargs)


# -- --user-dir


def _of_one_copy(original: Callable[..., None], args: Any) -> None:
    """Refuse a --user-dir that is another copy of this package than the imported one, and name both folders.

    fairseq's own message ('not globally unique', utils.py:464) names only one of the folders, and only the first call
    raises it. Moreover, fairseq would refuse a symbolic link to the imported folder.
    """
    folder = getattr(args, "user_dir", None)
    if folder is None or not is_this_copy(Path(os.path.abspath(folder))):
        original(args)


def is_this_copy(folder: Path) -> bool:
    """Return whether a --user-dir is this package.

    Raises:
        ImportError: The folder is another copy of this package.
    """
    # In the parent folder of a clone, --user-dir fairseq_posenc finds the clone, which contains the package.
    if _PACKAGE in (folder.resolve(), folder.resolve() / _PACKAGE.name):
        return True
    if folder.name == _PACKAGE.name and folder.exists():
        raise ImportError(
            f"--user-dir {folder}: another copy of {_PACKAGE.name} is already imported from {_PACKAGE}. Pass "
            f"--user-dir {_PACKAGE}. To use {folder} instead, remove {_PACKAGE} from the Python path "
            "(pip uninstall fairseq-posenc)."
        )
    return False


# -- several processes


def _of_some_processes(original: Callable[..., Any], cfg: Any, main: Callable[..., Any], **kwargs: Any) -> Any:
    """Refuse several processes without GPUs: fairseq would start none and exit with 0 (utils.py:382).

    Also refuse the processes of torchrun if each of them would train alone, and all of them in one folder.
    """
    with in_one_line():
        distributed, gpus = cfg.distributed_training, torch.cuda.device_count()
        size = distributed.distributed_world_size
        started = int(os.environ["WORLD_SIZE"]) if "TORCHELASTIC_RUN_ID" in os.environ else 1
        by_hand = (
            "To train on CPUs, start each process yourself with --distributed-no-spawn --distributed-rank R "
            f"--distributed-world-size {max(size, started)} --distributed-init-method tcp://HOST:PORT "
            "--distributed-backend gloo --ddp-backend legacy_ddp"
        )
        if size == 1 and started > 1:
            raise InputError(
                f"torchrun started {started} processes, but --distributed-world-size is 1, so each process would train "
                f"alone. {f'Give --distributed-world-size {started}' if gpus else by_hand}"
            )
        if size > 1 and not cfg.common.tpu and not distributed.distributed_no_spawn and not gpus:
            raise InputError(
                f"--distributed-world-size {size}: there is no GPU, so fairseq would start no process and would exit "
                f"without training. {by_hand}"
            )
        return original(cfg, main, **kwargs)
