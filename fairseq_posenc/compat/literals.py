"""Keep fairseq from running text of a checkpoint as code.

fairseq builds the model, the task and the criterion that a checkpoint names, with the options in the checkpoint. Some
of its classes evaluate an option as Python code, and one passes a path to a shell. Trainings use the same options, so
they must be literals there, too.
"""

from __future__ import annotations

import ast
import shlex
import sys
from collections.abc import Callable
from typing import Any

from ..core.refusal import InputError
from .patching import replace

_LONGEST = 1_000  # elements of a list that is repeated; `[0] * 9999999999` would fill the memory


def mend() -> None:
    """Let all modules of fairseq evaluate literals only, and refuse paths that a shell would not read as one word."""
    from fairseq.data.fasta_dataset import FastaDataset

    replace(FastaDataset, "_build_index", _without_shell)
    # `import fairseq` imports every module that evaluates text, which a test compares with its source.
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "fairseq":
            vars(module)["eval"] = literal


def literal(text: Any) -> Any:
    """Return the value of a Python literal; this function replaces `eval` in fairseq.

    Lists may be added and repeated, as in fairseq's lists of convolutions: `[(512, 3)] * 4 + [(256, 3)]`.

    Raises:
        TypeError: `text` is not a string. fairseq relies on the TypeError that `eval` raises for such values.
        InputError: `text` is not a literal.
    """
    if not isinstance(text, str):
        raise TypeError(f"only a string can be evaluated, not {type(text).__name__}")
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise InputError(
            f"{text[:80]!r} was not evaluated: it is not a literal, and fairseq would run it as Python code. Write a "
            "number, a string, True, False or None, or a list, tuple or dictionary of these."
        ) from None


def _value(node: ast.expr) -> Any:
    if not isinstance(node, ast.BinOp):
        return ast.literal_eval(node)
    left, right = _value(node.left), _value(node.right)
    if isinstance(left, list) and isinstance(node.op, ast.Add):
        return left + right
    if isinstance(left, list) and isinstance(node.op, ast.Mult) and len(left) * right <= _LONGEST:
        return left * right
    raise ValueError


def _without_shell(original: Callable[..., Any], dataset: Any, path: str) -> Any:
    """Refuse a path with --dataset-impl fasta that a shell, to which fairseq passes it, would not read as one word."""
    if shlex.quote(path) != path:
        raise InputError(
            f"{path!r}: fairseq would pass this path to a shell. Rename the folder and its files so that the path has "
            "only letters, digits and '_-./', or use --dataset-impl mmap."
        )
    return original(dataset, path)
