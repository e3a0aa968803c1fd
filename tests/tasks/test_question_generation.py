"""Compare the model of question generation with its definition; tests/generation/test_search.py compares its search."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("fairseq")

import support_questions as q
from support_questions import probabilities

from fairseq_posenc.models.question_generation_config import QuestionGenerationConfig


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return q.write_questions(tmp_path_factory.mktemp("questions") / "prepared")


@pytest.fixture(scope="module")
def both(data: Path) -> tuple[Any, Any]:
    """Return a model in float64 and its task."""
    model, task = q.moved(data, "--pos-enc", "shaw")
    return model.double(), task


@pytest.fixture(scope="module")
def batch(both: tuple[Any, Any]) -> dict[str, Any]:
    return q.batch(both[1])


# -- the model --------------------------------------------------------------------------------------------


def test_only_the_decoder_takes_the_encoding(data: Path) -> None:
    """By default, it is that of Qu et al. 2021 (LFHC and GCDF): 3 layers, 12 heads, feed-forward layers of 3072."""
    model, _ = q.built(data, "--pos-enc", "t5", "--pos-enc-args", "buckets=8")
    assert (model.encoder.pos.name, model.decoder.pos.name) == ("learned+segments-input", "t5")
    config = QuestionGenerationConfig()
    assert (config.decoder_layers, config.decoder_attention_heads, config.decoder_ffn_embed_dim) == (3, 12, 3072)


def test_a_sample_does_not_see_its_batch(both: tuple[Any, Any], batch: dict[str, Any]) -> None:
    """A sample alone, without padding, has the same probabilities as in its batch."""
    model, task = both
    together = probabilities(model, batch)
    for row, number in zip(together, batch["id"].tolist(), strict=True):
        single = task.dataset("test").collater([task.dataset("test")[number]])
        alone = probabilities(model, single)[0]
        torch.testing.assert_close(alone, row[: len(alone), : alone.shape[1]], rtol=1e-9, atol=1e-9)


def test_left_pads_are_right_pads(both: tuple[Any, Any], batch: dict[str, Any]) -> None:
    model, task = both
    dataset = copy.copy(task.dataset("test"))
    dataset.left_pad_source = False
    right = dataset.collater([dataset[number] for number in batch["id"].tolist()])
    assert right["net_input"]["src_tokens"][-1, -1] == q.PAD != batch["net_input"]["src_tokens"][-1, -1]
    assert right["net_input"]["src_segments"].ne(batch["net_input"]["src_segments"]).any()
    assert right["id"].tolist() == batch["id"].tolist()
    torch.testing.assert_close(probabilities(model, right), probabilities(model, batch), rtol=1e-9, atol=1e-9)


def test_segments_that_are_not_given_are_read_from_the_separators(both: tuple[Any, Any], batch: dict[str, Any]) -> None:
    model = both[0]
    inputs = {name: value for name, value in batch["net_input"].items() if name != "src_segments"}
    torch.testing.assert_close(probabilities(model, {"net_input": inputs}), probabilities(model, batch))
    wrong = {**inputs, "src_segments": 1 - batch["net_input"]["src_segments"]}
    assert not torch.allclose(probabilities(model, {"net_input": wrong}), probabilities(model, batch), atol=1e-3)
