"""Test that the language model recipe computes the scores of a text as the definition and fairseq do."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("fairseq")

from fairseq import checkpoint_utils
from fairseq.data import data_utils
from integration import lm, support
from support_plain_lm import by_prefixes, mask
from support_recipes import called

from recipes.lm_wikitext103 import evaluate

#: Length of the memory and of the segments, whether every token sees the same number of keys, and the largest distance.
ROWS = [(0, 8, False, None), (8, 8, False, None), (20, 4, True, 10)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lm.write_corpus(tmp_path_factory.mktemp("lm") / "data-bin")


@pytest.fixture(scope="module")
def checkpoint(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model that learned by a smoothed loss, which is not the one of perplexities."""
    folder = tmp_path_factory.mktemp("saved")
    smoothed = ["--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1]
    lm.train(data, "--pos-enc", "xl", *smoothed, "--max-update", 20, "--save-dir", folder)
    return folder / "checkpoint_last.pt"


@pytest.fixture(scope="module")
def scores(data: Path, checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what the recipe writes for one stream of the test set."""
    output = tmp_path_factory.mktemp("scores") / "scores.json"
    words = ["--checkpoint", checkpoint, "--data", data, "--split", "test", "--streams", 1, "--length", 8, "--cpu"]
    words += ["--memories", "0,8,20", "--segment", 4, "--same-length", "true", "--clamp", 10, "--output", output]
    called(evaluate, *words)
    written: dict[str, Any] = json.loads(output.read_text())
    return written


@pytest.mark.parametrize(("memory", "segment", "same_length", "clamp"), ROWS)
@torch.no_grad()
def test_the_perplexity_is_the_plain_definition_and_that_of_fairseq(
    memory: int, segment: int, same_length: bool, clamp: int | None, data: Path, checkpoint: Path, scores: Any
) -> None:
    """The definition is a forward pass over the prefix of each token."""
    overrides = {"data": str(data), "pos_enc_args": f"clamp={clamp}" if clamp else ""}
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], overrides)
    model = model.eval().double()
    tokens = torch.cat([*data_utils.load_indexed_dataset(str(data / "test"), task.dictionary)])
    text = torch.cat([tokens.new_tensor([task.dictionary.eos()]), tokens]).long()[None]
    features = by_prefixes(model, text[:, :-1], mask(len(tokens), segment, memory, same_length))
    log_p = model.decoder.output_layer(features).log_softmax(-1).gather(-1, text[:, 1:, None])
    ours = scores[f"memory {memory}"]["perplexity"]
    assert ours == pytest.approx(math.exp(-log_p.mean()), rel=1e-4)
    assert scores["tokens"] == len(tokens)

    words = ["--task", "posenc_lm_memory", "--gen-subset", "test", "--batch-size", 1, *["--same-length"] * same_length]
    words += ["--eval-mem-length", memory, "--eval-segment-length", segment, "--model-overrides", json.dumps(overrides)]
    _, theirs = support.evaluate("eval_lm", data, checkpoint, *words)
    assert theirs["perplexity"] == pytest.approx(ours, rel=1e-6)
