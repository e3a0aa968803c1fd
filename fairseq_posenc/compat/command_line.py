"""Fix fairseq's flags --bf16 and --user-dir, and add two flags to its commands."""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from ..core.arguments import with_choice
from . import checkpoint_names, flags, limits, quiet, refusals, resuming, unknown_words
from .patching import replace, running, say_once

logger = logging.getLogger(__name__)

_PACKAGE = Path(__file__).resolve().parents[1]


def mend() -> None:
    """Read `--bf16` as bfloat16, add two flags, and refuse a second copy of this package.

    fairseq takes `--bf16` for `--tpu` (options.py:200), which fails without torch_xla. The flag
    `--allow-checkpoint-names` is added with the options of CommonConfig: fairseq adds these to a parser just after it
    has imported the plugin. `--restore-previous` is added with the options of OptimizationConfig, which only
    fairseq-train has.
    """
    from fairseq import options, utils

    replace(options, "parse_args_and_arch", _as_meant)
    replace(options, "gen_parser_from_dataclass", _with_flag)
    replace(utils, "import_user_module", _of_one_copy)


def _as_meant(
    original: Callable[..., Any], parser: Any, input_args: list[str] | None = None, *args: Any, **kwargs: Any
) -> Any:
    quiet.in_command()
    _refuse_in_one_line()
    words = sys.argv[1:] if input_args is None else input_args
    refusals.refuse_arch(words)
    if not refusals.debugging():
        parser.error = partial(_without_usage, parser)  # the usage has 170 lines
    parsed = original(parser, input_args, *args, **kwargs)
    namespace = parsed[0] if isinstance(parsed, tuple) else parsed
    refusals.refuse_colons(namespace)
    has_xla = importlib.util.find_spec("torch_xla") is not None
    if getattr(namespace, "bf16", False) and "--tpu" not in words and not has_xla:
        say_once(logger, "--bf16 means bfloat16 on this device; fairseq would require a TPU")
        namespace.tpu = False
    if names := getattr(namespace, "allow_checkpoint_names", None):
        checkpoint_names.allow(names)
    limits.adopt(namespace, words)
    unknown_words.check(namespace)
    if getattr(namespace, "restore_previous", False):
        os.environ[resuming.VARIABLE] = "1"  # also for the processes that fairseq starts
    return parsed


def _refuse_in_one_line() -> None:
    """End fairseq-generate with one line if it refuses something; unlike other commands, it skips `call_main`."""
    if (module := running("fairseq_cli.generate")) is not None:
        replace(module, "main", _of_generate)


def _of_generate(original: Callable[..., Any], cfg: Any, **kwargs: Any) -> Any:
    with refusals.in_one_line():
        return original(cfg, **kwargs)


def _without_usage(parser: argparse.ArgumentParser, message: str) -> NoReturn:
    advice = flags.advice(parser, message)
    refusals.fail(" ".join(filter(None, (f"{with_choice(message)}.", advice, "--help lists the flags."))))


def _with_flag(original: Callable[..., None], parser: Any, dataclass: Any, *args: Any, **kwargs: Any) -> None:
    from fairseq.dataclass.configs import CommonConfig, OptimizationConfig

    original(parser, dataclass, *args, **kwargs)
    if isinstance(dataclass, CommonConfig):
        checkpoint_names.add_flag(parser)
    if isinstance(dataclass, OptimizationConfig):
        resuming.add_flag(parser)


def _of_one_copy(original: Callable[..., None], args: Any) -> None:
    """Refuse a --user-dir that is another copy of this package than the imported one, and name both folders.

    fairseq's own message ('not globally unique', utils.py:464) names only one of the folders, and only the first call
    raises it. Moreover, fairseq would refuse a symbolic link to the imported folder.
    """
    folder = _user_dir(args)
    if folder is not None and is_this_copy(folder):
        logger.debug(f"--user-dir {folder} is imported already")  # importing it has already registered everything
    else:
        original(args)


def is_this_copy(folder: Path) -> bool:
    """Return whether a --user-dir is this package.

    Raises:
        ImportError: The folder is another copy of this package.
    """
    # In the parent folder of a clone, --user-dir fairseq_posenc finds the clone, which contains the package.
    if _PACKAGE in (folder.resolve(), folder.resolve() / _PACKAGE.name):
        return True
    if folder.name == _PACKAGE.name:
        raise ImportError(
            f"--user-dir {folder}: another copy of {_PACKAGE.name} is already imported from {_PACKAGE}. Pass "
            f"--user-dir {_PACKAGE}. To use {folder} instead, remove {_PACKAGE} from the Python path "
            "(pip uninstall fairseq-posenc)."
        )
    return False


def _user_dir(args: Any) -> Path | None:
    """Return the folder that fairseq would import for --user-dir, or None if there is no such folder."""
    import fairseq

    user_dir = getattr(args, "user_dir", None)
    if user_dir is None:
        return None
    inside = os.path.dirname(fairseq.__file__)
    for path in (os.path.abspath(user_dir), os.path.join(inside, user_dir), os.path.join(inside, "..", user_dir)):
        if os.path.exists(path):
            return Path(os.path.normpath(path))
    return None
