"""Provide valid calls of the C++ functions, and calls that must raise because C++ would leave a tensor's memory.

As a program (`python -O cpp_calls.py`), this file makes all wrong calls, and exits with status 1 if one is accepted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fairseq_posenc.ops import cpp

#: Arguments of valid calls. Tensors are given by their shapes, for 2 samples, 3 heads, 4 queries, 5 keys and width 8.
RIGHT: dict[str, dict[str, Any]] = {
    "trilinear": {"q": (2, 3, 4, 8), "k": (2, 3, 5, 8), "vectors": (3, 8, 8)},
    "single_query": {"way": "both", "k": (2, 3, 5, 8), "vectors": (3, 5, 8), "q": (2, 3, 1, 8), "shared": 0},
    "spread": {"out": (6, 4, 5), "of_query": (6, 4, 3), "of_key": (6, 5, 3), "first": 2, "add": True},
    "spread_backward": {"grad": (6, 4, 5), "of_query": (6, 4, 3), "of_key": (6, 5, 3), "first": 2},
    "gates": {"content": (6, 4, 5), "of_query": (6, 4, 3), "of_key": (6, 5, 3), "first": 2, "offset": 0.5},
    "gates_backward": {
        "content": (6, 4, 5),
        "grad": (6, 4, 5),
        "of_query": (6, 4, 3),
        "of_key": (6, 5, 3),
        "first": 2,
        "offset": 0.5,
    },
    "across": {"pairs": (6, 4, 5), "window": (3, 2, 2, 4), "start": 3, "top": 1},
    "across_backward": {"pairs": (6, 4, 5), "window": (3, 2, 2, 4), "start": 3, "top": 1},
}
#: Tensors that may have any strides, because the function copies them.
ANY_STRIDES = {("trilinear", "q"), ("trilinear", "k"), *(("single_query", name) for name in ("k", "vectors", "q"))}
#: Changes that keep the arguments valid, because a window may cover only a part of the pairs.
FITTING = {(name, change) for name in ("across", "across_backward") for change in ("pairs[1] + 1", "pairs[2] + 1")}
FITTING |= {(name, "window[3] - 1") for name in ("across", "across_backward")}


@dataclass(frozen=True)
class Call:
    """Describe a call with one wrong argument, and the error that it must raise."""

    function: str
    wrong: str
    change: Callable[[dict[str, Any]], object]
    error: type[Exception] = ValueError

    def __str__(self) -> str:
        return f"{self.function}: {self.wrong}"

    def __call__(self) -> object:
        arguments = right(self.function)
        self.change(arguments)
        return getattr(cpp, self.function)(**arguments)


def right(function: str) -> dict[str, Any]:
    """Return arguments that the function takes."""
    return {name: torch.randn(x) if isinstance(x, tuple) else x for name, x in RIGHT[function].items()}


def wrong_calls() -> list[Call]:
    """Return each function's wrong calls: wrong in one tensor, one size or one number."""
    calls = []
    for function, arguments in RIGHT.items():
        for name, shape in arguments.items():
            if isinstance(shape, tuple):
                calls += [*_wrong_tensors(function, name), *_wrong_sizes(function, name, shape)]
    return [*calls, *_wrong_numbers(), *_wrong_together()]


def _wrong_tensors(function: str, name: str) -> list[Call]:
    changes: dict[str, tuple[Callable[[Tensor], object], type[Exception]]] = {
        "in float64": (Tensor.double, TypeError),
        "in bfloat16": (Tensor.bfloat16, TypeError),
        "of integers": (Tensor.int, TypeError),
        "as a list": (Tensor.tolist, TypeError),
        "on 'meta'": (lambda x: x.to("meta"), ValueError),
        "sparse": (Tensor.to_sparse, ValueError),
        "with a dimension more": (lambda x: x[None], ValueError),
        "with a dimension less": (lambda x: x[0], ValueError),
        "with a gradient": (Tensor.requires_grad_, ValueError),
        "negated later": (lambda x: torch._neg_view(x), ValueError),
        "without memory": (_freed, ValueError),
    }
    if (function, name) not in ANY_STRIDES:
        changes["with gaps"] = (lambda x: x.repeat_interleave(2, -1)[..., ::2], ValueError)
        changes["transposed"] = (lambda x: x.mT.contiguous().mT, ValueError)
        changes["expanded"] = (lambda x: x[:1].expand_as(x), ValueError)

    def call(what: str, change: Callable[[Tensor], object], error: type[Exception]) -> Call:
        return Call(
            function, f"{name} {what}", lambda arguments: arguments.update({name: change(arguments[name])}), error
        )

    return [call(what, *change) for what, change in changes.items()]


def _freed(x: Tensor) -> Tensor:
    """Return the tensor without its memory, as sharded training leaves parameters."""
    x.untyped_storage().resize_(0)
    return x


def _wrong_sizes(function: str, name: str, shape: tuple[int, ...]) -> list[Call]:
    calls = []
    for axis, size in enumerate(shape):
        for sign, other in (("+ 1", size + 1), ("- 1", size - 1)):
            changed = (*shape[:axis], other, *shape[axis + 1 :])
            if (function, f"{name}[{axis}] {sign}") not in FITTING:
                calls.append(_with(function, f"{name}[{axis}] {sign}", **{name: changed}))
    return calls


def _with(function: str, wrong: str, error: type[Exception] = ValueError, **arguments: Any) -> Call:
    """Return a call with other arguments, tensors by their shapes."""

    def change(original: dict[str, Any]) -> None:
        original.update({name: torch.randn(x) if isinstance(x, tuple) else x for name, x in arguments.items()})

    return Call(function, wrong, change, error)


def _wrong_numbers() -> list[Call]:
    numbers = {
        "single_query": {"shared": 5},
        "across": {"start": 3, "top": 1},
        "across_backward": {"start": 3, "top": 1},
    }
    numbers |= {function: {"first": 7} for function in ("spread", "spread_backward", "gates", "gates_backward")}
    calls = []
    for function, of_function in numbers.items():
        for name, last in of_function.items():
            outside = (-1, last + 1, -(2**63), 2**63, 2**64)
            calls += [_with(function, f"{name}={number}", **{name: number}) for number in outside]
            calls.append(_with(function, f"{name}=1.5", TypeError, **{name: 1.5}))
    return calls


def _wrong_together() -> list[Call]:
    far = [
        call
        for function in ("spread", "spread_backward", "gates", "gates_backward")
        for call in (
            _with(function, "no vector", of_query=(6, 4, 0), of_key=(6, 5, 0)),
            _with(function, "no vector of queries", of_query=(6, 4, 0)),
            _with(function, "no vector of keys", of_key=(6, 5, 0)),
        )
    ]
    across = [
        call
        for function in ("across", "across_backward")
        for call in (
            _with(function, "no table", pairs=(0, 4, 5), window=(0, 2, 2, 4)),
            _with(function, "no column", window=(3, 2, 0, 4), top=0),
            _with(function, "more columns than distances", window=(3, 2, 2, 1)),
        )
    ]
    return [
        *far,
        *across,
        _with("spread", "neither", of_query=None, of_key=None),
        _with("spread_backward", "neither", of_query=None, of_key=None),
        *(_with(name, "no keys' gate", TypeError, of_key=None) for name in ("gates", "gates_backward")),
        _with("single_query", "another way", way="divided"),
        _with("single_query", "a query that is alone", way="alone"),
        *(
            _with("single_query", f"no query {way}", TypeError, way=way, q=None)
            for way in ("added", "multiplied", "both")
        ),
        _with("single_query", "more keys shared than there are", vectors=(3, 0, 8), shared=6),
        _with("single_query", "shared, with a vector per key", shared=3),
        _with("single_query", "two tables for three heads", vectors=(2, 5, 8)),
        _with("trilinear", "two tables for three heads", vectors=(2, 8, 8)),
        _with("trilinear", "a vector per pair", vectors=(3, 20, 8)),
        _with("trilinear", "neither queries nor keys", q=(2, 3, 0, 8), k=(2, 3, 0, 8)),
    ]


def main() -> int:
    """Make all wrong calls, and print their number and the calls that were accepted."""
    let_through = []
    calls = wrong_calls()
    for call in calls:
        print(call, flush=True)  # the last line is the call that ended the process
        try:
            call()
        except call.error:
            continue
        except Exception as error:  # noqa: BLE001 - another error is a fault to be listed
            let_through.append(f"{call} raises {type(error).__name__}: {error}")
        else:
            let_through.append(str(call))
    print(f"{len(calls)} wrong calls, asserts {'on' if __debug__ else 'off'}, let through: {let_through}")
    return bool(let_through)


if __name__ == "__main__":
    sys.exit(main())
