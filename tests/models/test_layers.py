"""Test how the layers of all models are wrapped."""

from __future__ import annotations

from argparse import Namespace

import pytest
from torch import nn

pytest.importorskip("fairseq")

from fairseq_posenc.models.layers import wrapped


@pytest.mark.parametrize(("flag", "recomputed"), [("checkpoint", True), ("offload", True), (None, False)])
def test_offloading_implies_that_layers_are_recomputed(flag: str | None, recomputed: bool) -> None:
    flags = {f"{name}_activations": name == flag for name in ("checkpoint", "offload")}
    layer = wrapped(nn.Linear(2, 2), Namespace(min_params_to_wrap=1, **flags))
    assert ("forward" in vars(layer)) == recomputed  # checkpoint_wrapper replaces the method of the instance
