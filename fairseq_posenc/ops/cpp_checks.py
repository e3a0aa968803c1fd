"""Check the arguments that cpp.py passes to C++, because C++ reads through pointers and does not check bounds.

The checks raise errors instead of using `assert`, because `python -O` removes assertions. Each check must be fast (a
fraction of a microsecond), because it runs in every layer of each decoding step.
"""

from __future__ import annotations

import torch
from torch import Tensor


def require_readable(function: str, name: str, tensor: Tensor | None, dims: int) -> Tensor:
    """Return the argument `tensor`, or raise an error if C++ cannot read it.

    The argument must be a dense float32 tensor on a CPU with `dims` dimensions, and must not need a gradient.

    Raises:
        TypeError: The argument is not a tensor, or its dtype is not float32.
        ValueError: The tensor has the wrong device, layout or number of dimensions, is a lazy negation, or needs a
            gradient.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"cpp.{function}: `{name}` must be a tensor, not {type(tensor).__name__}.")
    if tensor.dtype is not torch.float32:
        raise TypeError(f"cpp.{function}: `{name}` has dtype {tensor.dtype}; convert it to torch.float32.")
    if not tensor.is_cpu:
        problem = f"is on the device '{tensor.device}'; move it to the CPU"
    elif tensor.layout is not torch.strided:
        problem = f"has the layout {tensor.layout}; convert it with .to_dense()"
    elif tensor.dim() != dims:
        problem = f"has {tensor.dim()} dimensions, {tuple(tensor.shape)}; it must have {dims}"
    elif tensor.is_neg():
        problem = "is a lazy negation (its negative bit is set); call .resolve_neg()"
    elif tensor.requires_grad and torch.is_grad_enabled():
        problem = "requires a gradient, but this function does not compute gradients; call it under torch.no_grad()"
    else:
        return tensor
    raise ValueError(f"cpp.{function}: `{name}` {problem}.")


def require_shape(function: str, name: str, tensor: Tensor, shape: tuple[int, ...], legend: str) -> None:
    """Raise ValueError unless the tensor has the given shape; the message quotes `legend`, which explains the sizes."""
    if tensor.shape != shape:
        raise ValueError(
            f"cpp.{function}: `{name}` has the shape {tuple(tensor.shape)}; it must have {shape}: {legend}."
        )


def require_contiguous(function: str, name: str, tensor: Tensor) -> None:
    """Raise ValueError unless the tensor is contiguous."""
    if not tensor.is_contiguous():
        raise ValueError(
            f"cpp.{function}: `{name}` has the strides {tensor.stride()} for the shape {tuple(tensor.shape)}; "
            "make it contiguous with .contiguous()."
        )


def require_tables(function: str, tables: int, heads: int) -> None:
    """Raise ValueError unless there is one table for all heads or one per head."""
    if tables not in (1, heads):
        raise ValueError(
            f"cpp.{function}: `vectors` has {tables} tables; it must have 1, which all heads share, or one for each "
            f"of the {heads} heads."
        )


def require_between(function: str, name: str, number: int, last: int, legend: str) -> None:
    """Raise TypeError if `number` is not an integer, and ValueError if it is not from 0 to `last`."""
    if not isinstance(number, int):
        raise TypeError(f"cpp.{function}: `{name}` must be an integer, not {type(number).__name__}.")
    if not 0 <= number <= last:
        raise ValueError(f"cpp.{function}: `{name}` is {number}; it must be from 0 to {last}, {legend}.")


def pointer(function: str, name: str, tensor: Tensor) -> int:
    """Return the address of the tensor's first number.

    Raises:
        ValueError: The tensor is not empty but has no memory: its storage was freed, it is a fake tensor, or torch
            represents its zeros without storage.
    """
    address = tensor.data_ptr()
    if not address and tensor.numel():
        raise ValueError(
            f"cpp.{function}: `{name}` has the shape {tuple(tensor.shape)}, but no memory, because "
            "its storage was freed or it is a fake tensor; pass a tensor that holds data."
        )
    return address


def clipped_numbers(
    function: str,
    pairs: dict[str, Tensor],
    of_query: Tensor | None,
    of_key: Tensor | None,
    first: int,
    both: bool = False,
) -> tuple[int, int, int, int, int]:
    """Check the arguments of a function of clipped_products.cpp, and return its integer arguments G, Q, K, first, E.

    Args:
        function: Name of the function in cpp.py, for error messages.
        pairs: Tensors [G, Q, K] by their names.
        of_query, of_key: Products with E vectors, [G, Q, E] and [G, K, E], or None.
        first: Index of the distance to which the first of the E vectors belongs.
        both: Whether `of_query` and `of_key` must both be tensors; otherwise one of the two may be None.
    """
    for name, tensor in pairs.items():
        require_readable(function, name, tensor, 3)
        require_contiguous(function, name, tensor)
    matrices, queries, keys = next(iter(pairs.values())).shape
    for name, tensor in pairs.items():
        require_shape(function, name, tensor, (matrices, queries, keys), "one number per matrix, query and key")
    products = {
        name: (require_readable(function, name, x, 3), length)
        for name, x, length in (("of_query", of_query, queries), ("of_key", of_key, keys))
        if both or x is not None
    }
    if not products:
        raise ValueError(f"cpp.{function}: `of_query` and `of_key` are both None; one of them must be a tensor.")
    vectors = next(iter(products.values()))[0].shape[2]
    for name, (x, length) in products.items():
        require_contiguous(function, name, x)
        require_shape(function, name, x, (matrices, length, vectors), "one product per matrix, row and vector")
        if not vectors:
            raise ValueError(f"cpp.{function}: `{name}` holds products with 0 vectors; there must be at least one.")
    legend = f"the largest index of a distance between {queries} queries and {keys} keys"
    require_between(function, "first", first, max(queries + keys - 2, 0), legend)
    return matrices, queries, keys, first, vectors
