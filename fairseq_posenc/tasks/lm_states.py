"""Store the segment memories of all workers (processes) in one checkpoint.

Legend: W workers, L layers, M states per memory, B streams, d width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from fairseq.distributed import utils
from torch import Tensor

from ..attention.memory import SegmentMemory


def place() -> tuple[int, int]:
    """Return the rank of this worker and the number of workers."""
    if not torch.distributed.is_initialized():
        return 0, 1
    return utils.get_data_parallel_rank(), utils.get_data_parallel_world_size()


def gathered(memory: SegmentMemory) -> list[list[Tensor]]:
    """Collect the memory of all workers on the CPU of worker 0; the other workers return an empty list.

    Every worker must call this function.

    Returns:
        One list per worker; each list contains one tensor [M, B, d] per layer.
    """
    rank, workers = place()
    if not memory.states or workers == 1:
        return [[state.cpu() for state in memory.states]]
    own = torch.stack(memory.states)  # [L, M, B, d]
    collected = [torch.empty_like(own) for _ in range(workers)] if rank == 0 else None
    torch.distributed.gather(own, collected, dst=0, group=utils.get_data_parallel_group())
    return [list(worker_states.cpu().unbind(0)) for worker_states in collected or []]


def restored(memory: SegmentMemory, saved: Mapping[str, Any]) -> None:
    """Load the memory of this worker from the lists that `gathered` returned."""
    states: Sequence[Sequence[Tensor]] = saved["states"]
    memory.segment = memory.kept = saved["segment"]
    memory.states = tuple(states[place()[0]]) if any(states) else ()
