"""--pos-enc-log-interval: what reaches the log, and that training stays as it is."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_posenc.attention.statistics import measuring, values_of

from . import lm, support

JSON = ["--log-format", "json", "--log-interval", "1"]
VALUES = ("largest_logit", "entropy", "table_norm")
NAMES = [f"{value}_{side}coder_{layer}" for value in VALUES for side in ("en", "de") for layer in (1, 2)]


def logged_by(caplog: pytest.LogCaptureFixture, tag: str = "train_inner") -> list[dict[str, Any]]:
    """Return the statistics in each line of the log."""
    records = [json.loads(r.getMessage()) for r in caplog.records if r.name == tag and r.getMessage().startswith("{")]
    return [{key: float(x) for key, x in record.items() if "coder_" in key} for record in records]


def test_every_second_update_is_measured_and_training_stays_the_same(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    flags = ["--pos-enc", "m2", "--pos-enc-decoder", "shaw", "--update-freq", 2, "--max-update", 4, "--dropout", 0.1]
    plain = support.train(data, *flags)
    with caplog.at_level("INFO"):
        logged = support.train(data, *flags, "--pos-enc-log-interval", 2, *JSON)
    assert logged.losses == plain.losses
    assert all(torch.equal(x, plain.model.state_dict()[name]) for name, x in logged.model.state_dict().items())
    first, second, third, fourth = logged_by(caplog)
    assert not first
    assert sorted(second) == sorted(NAMES)
    assert third == second  # until the next measurement
    assert fourth.keys() == second.keys()
    assert fourth != second
    assert all(math.isfinite(x) for x in fourth.values())
    assert not logged_by(caplog, "valid")


def test_the_numbers_are_those_of_the_weights_before_the_update(lines: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Both batches of the update count, and the columns of segment memory are keys."""
    flags = ["--pos-enc", "xl", "--update-freq", 2, "--max-update", 1, "--pos-enc-log-interval", 1, *JSON]
    model, task = lm.built(lines, *flags, seed=3)  # the seed of the training
    memory = task._memory(lm.MEMORY)
    with measuring(model) as layers, torch.no_grad():
        for number, sample in enumerate(lm.batches(task, "train")[:2]):
            model(sample["net_input"]["src_tokens"], memory=memory.begin(number))
    with caplog.at_level("INFO"):
        lm.train(lines, *flags)
    (line,) = logged_by(caplog)
    assert line == {name: pytest.approx(x, abs=2e-4) for name, x in values_of(layers).items()}


def test_tables_that_are_split_are_refused(data: Path) -> None:
    run = support.train(data, "--max-update", 1, "--pos-enc-log-interval", 1)
    run.trainer.cfg.distributed_training.ddp_backend = "fully_sharded"
    with pytest.raises(ValueError, match="--pos-enc-log-interval cannot read tables that --ddp-backend fully_sharded"):
        run.trainer.train_step([])
