"""Let the code that torch compiles for a GPU read each row of logits once, and keep it in registers.

By itself, torch does so only if all tensors of a loop are stored in the order in which it reads them. A bias that all
samples share is not, and neither are products by distance. The softmax would then read each row two or three times, and
its gradient twice. With the rows in registers, both take about half of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import torch
from torch import Tensor
from torch._inductor.choices import InductorChoices
from torch._inductor.compile_fx import compile_fx, compile_fx_inner
from torch._inductor.dependencies import MemoryDep
from torch._inductor.virtualized import V

from .formula import BOUNDS

#: The longest rows that are kept in registers. Torch uses this number, too.
LONGEST = BOUNDS[-1]


class _KeepRows(InductorChoices):
    """Choose loops that keep rows in registers, wherever the numbers of a row are neighbours in memory."""

    @staticmethod
    def should_use_persistent_reduction(features: Any, cooperative_reduction: bool) -> bool:
        if InductorChoices.should_use_persistent_reduction(features, cooperative_reduction):
            return True
        short = V.graph.sizevars.statically_known_leq(features.reduction_numel, LONGEST)
        rows = all(_of_neighbours(node.read_writes.reads) for node in features.reduction_nodes())
        return short and rows and not cooperative_reduction

    @staticmethod
    def can_fuse_vertical(scheduler: Any, node1: Any, node2: Any, shared_data_score: int) -> bool:
        """Transpose a result in a loop of its own, which works in blocks; a loop over rows would write columns."""
        if not node2.is_reduction() and not _of_neighbours(node2.read_writes.reads_and_writes()):
            return False
        return InductorChoices.can_fuse_vertical(scheduler, node1, node2, shared_data_score)


def _of_neighbours(accesses: Iterable[Any]) -> bool:
    """Return whether the innermost loop accesses neighbouring numbers, or the same number, in each tensor."""
    inner = [(dep.index, dep.var_names[-1]) for dep in accesses if isinstance(dep, MemoryDep) and dep.var_names]
    return all(index.coeff(variable) in (0, 1) for index, variable in inner)


def compile_graph(graph: Any, inputs: list[Tensor]) -> Callable[..., Any]:
    """Compile a graph and its gradient like the backend `inductor` of torch.compile, but keep rows in registers."""
    return cast(Callable[..., Any], compile_fx(graph, inputs, inner_compile=_compile))


def _compile(graph: torch.fx.GraphModule, inputs: Any, **settings: Any) -> Any:
    with V.set_choices_handler(_KeepRows()):
        return compile_fx_inner(graph, inputs, **settings)
