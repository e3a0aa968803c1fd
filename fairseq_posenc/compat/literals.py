"""Read options such as `adam_betas` as Python literals, where fairseq itself would run them as Python code.

An option may come from a checkpoint's configuration (models/fconv.py:123), so in fairseq a checkpoint can run any code.
"""

from __future__ import annotations

import ast
import importlib
import operator
import sys
from collections.abc import Callable
from typing import Any

from ..core.refusal import InputError

#: Modules of fairseq that call `eval`; a test compares this list with fairseq's source.
MODULES = (
    "fairseq.criterions.ctc",
    "fairseq.data.audio.raw_audio_dataset",
    "fairseq.data.codedataset",
    "fairseq.models.fconv",
    "fairseq.models.fconv_lm",
    "fairseq.models.fconv_self_att",
    "fairseq.models.hubert.hubert",
    "fairseq.models.lightconv_lm",
    "fairseq.models.speech_to_text.s2t_wav_transformer",
    "fairseq.models.transformer_lm",
    "fairseq.models.wav2vec.wav2vec",
    "fairseq.models.wav2vec.wav2vec2",
    "fairseq.optim.adafactor",
    "fairseq.optim.adam",
    "fairseq.optim.adamax",
    "fairseq.optim.cpu_adam",
    "fairseq.optim.fused_lamb",
    "fairseq.utils",
)
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_MOST_ITEMS = 10_000  # longest list that `*` may build; the deepest published model has about 50 layers


def evaluate_literals_only() -> None:
    """Replace the built-in `eval` by `literal` in every module of fairseq that calls `eval`."""
    for name in MODULES:
        module = sys.modules.get(name) or importlib.import_module(name)
        module.__dict__["eval"] = literal


def literal(text: Any) -> Any:
    """Return the value of a Python literal, or of a calculation such as "[(512, 3)] * 20 + [(256, 3)]" or "1e-3 * 0.5".

    Raises:
        TypeError: `text` is not a string. fairseq relies on the TypeError that `eval` raises for such values.
        ValueError: `text` is neither a literal nor such a calculation.
    """
    if not isinstance(text, str):
        raise TypeError(f"only a string can be evaluated, not {type(text).__name__}")
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (ValueError, SyntaxError, TypeError, ArithmeticError, MemoryError, RecursionError):
        shown = text if len(text) <= 80 else f"{text[:77]}..."
        raise InputError(
            f"{shown!r} was not evaluated: it is not a literal, and fairseq would run it as Python code. Write a "
            "number, a string, True, False or None, or a list, tuple or dictionary of these."
        ) from None


def _value(node: ast.expr) -> Any:
    """Return the value of a literal, a calculation with numbers, a sum of lists or a repeated list.

    Raises:
        ValueError: The expression has another form.
    """
    if not isinstance(node, ast.BinOp):
        return ast.literal_eval(node)
    left, right = _value(node.left), _value(node.right)
    if type(node.op) in _ARITHMETIC and {type(left), type(right)} <= {int, float}:
        return _ARITHMETIC[type(node.op)](left, right)
    if isinstance(node.op, ast.Add):
        for kind in (list, tuple):
            if isinstance(left, kind) and isinstance(right, kind):
                return kind([*left, *right])
    elif isinstance(node.op, ast.Mult):
        items, times = (left, right) if isinstance(left, list | tuple) else (right, left)
        if isinstance(items, list | tuple) and type(times) is int and len(items) * times <= _MOST_ITEMS:
            return items * times
    raise InputError("arithmetic is allowed only on numbers, and only lists and tuples can be joined or repeated")
