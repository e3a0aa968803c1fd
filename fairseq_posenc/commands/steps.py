"""Build steps whose costs are measured, and measure their peak memory on a GPU."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .clock import Step


def step_on(x: Tensor, run: Callable[[Tensor], Tensor], module: nn.Module) -> Step:
    """Return a step that computes `run(x)`. In training, it also computes the gradients of x and of all parameters."""
    if not module.training:
        return without_gradients(lambda: run(x))
    inputs, gradient = [x.requires_grad_(), *module.parameters()], torch.randn_like(x)
    return lambda: torch.autograd.grad(run(x), inputs, gradient, allow_unused=True)


def without_gradients(step: Step) -> Step:
    """Return a function that runs the step without gradients, as in inference."""
    return torch.no_grad()(step)


def peak_on_gpu(step: Step, device: torch.device) -> int:
    """Return the peak memory of a step in bytes, not counting memory that was in use before the step."""
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    step()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before
