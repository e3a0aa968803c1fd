"""Test that our transformer equals that of stock fairseq: its names, weights and losses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from . import support
from .support import STOCK, parameters

SINUSOIDAL = ["--pos-enc", "sinusoidal", "--pos-enc-args", "freq=t2t,offset=2"]


def test_fifty_losses_equal_those_of_stock_fairseq(data: Path) -> None:
    """Both start from the same seed, because weights are drawn in the same order."""
    ours = support.train(data, *SINUSOIDAL, "--max-update", 50)
    theirs = support.train(data, "--max-update", 50, model=STOCK)
    assert len(ours.losses) == 50
    assert ours.losses == pytest.approx(theirs.losses, rel=1e-4)
    assert ours.losses[-1] < ours.losses[0] - 0.5
    assert parameters(ours.model) == parameters(theirs.model)


def test_without_the_offset_the_losses_differ(data: Path) -> None:
    """This shows that the test above can fail."""
    ours = support.train(data, *SINUSOIDAL[:-1], "freq=t2t", "--max-update", 3)
    theirs = support.train(data, "--max-update", 3, model=STOCK)
    assert ours.losses != pytest.approx(theirs.losses, rel=1e-4)


@pytest.mark.parametrize(
    "more", [[], ["--encoder-normalize-before", "--decoder-normalize-before"], ["--layernorm-embedding"]]
)
def test_a_stock_checkpoint_loads_by_its_names(data: Path, more: list[str]) -> None:
    ours, task = support.built(data, *SINUSOIDAL, *more, seed=1)
    theirs, _ = support.built(data, *more, model=STOCK, seed=2)
    state = {name: tensor for name, tensor in theirs.state_dict().items() if "_float_tensor" not in name}
    assert ours.state_dict().keys() - {"encoder.version", "decoder.version"} == state.keys() - {
        "encoder.version",
        "decoder.version",
    }
    ours.load_state_dict(state)
    for batch in support.batches(task):
        words = batch["target"].ne(ours.decoder.padding_idx)  # the two differ at padding, which has no effect
        logits = [model(**batch["net_input"])[0][words] for model in (ours, theirs)]
        torch.testing.assert_close(*logits, rtol=1e-5, atol=1e-5)


def test_learned_positions_train_as_those_of_stock_fairseq(data: Path) -> None:
    ours, task = support.built(data, "--pos-enc", "learned")
    theirs, _ = support.built(data, model=[*STOCK, "--encoder-learned-pos", "--decoder-learned-pos"])
    theirs.load_state_dict(support.stock_state(ours, "encoder", "decoder"))
    unused = 2 * 16 * (ours.encoder.padding_idx + 1)  # fairseq's rows before the first position, two stacks
    assert parameters(theirs) - parameters(ours) == unused
    batches = support.batches(task, "train", size=40)
    losses = [steps(model, batches) for model in (ours, theirs)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for side in ("encoder", "decoder"):
        table = getattr(theirs, side).embed_positions.weight[ours.encoder.padding_idx + 1 :]
        torch.testing.assert_close(getattr(ours, side).pos.learned.weight, table, rtol=1e-4, atol=1e-5)


def steps(model: Any, batches: list[dict[str, Any]]) -> list[float]:
    """Return the losses of plain gradient descent."""
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for batch in batches:
        logits = model(**batch["net_input"])[0]
        loss = torch.nn.functional.cross_entropy(logits.transpose(1, 2), batch["target"], ignore_index=1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
