"""Test that an imported GPT-2 keeps its logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from support_exchange import LENGTH, MODELS, WORDS, close, imported, in_fairseq, in_transformers, random_model, saved
from torch import Tensor

import fairseq_posenc
from fairseq_posenc.__main__ import main
from fairseq_posenc.hub import checkpoint, hugging_face
from fairseq_posenc.hub.pretrained import read

#: The last id of the vocabulary, which is the end of text.
END = WORDS - 1
#: Ids in fairseq's order.
NEW = torch.tensor([*range(4, WORDS + 3), 2])
UNKNOWN_TO_GPT2 = [0, 1, 3]


def tokens() -> Tensor:
    return torch.randint(0, WORDS, (2, LENGTH), generator=torch.Generator().manual_seed(0))


def compare(actual: Tensor, expected: Tensor) -> None:
    """Compare logits and log-probabilities. Symbols that GPT-2 does not have must not change the probabilities."""
    close(actual[..., NEW], expected)
    close(actual.log_softmax(-1)[..., NEW], expected.log_softmax(-1))
    torch.testing.assert_close(
        actual[..., UNKNOWN_TO_GPT2], torch.full((2, LENGTH, 3), hugging_face.UNLIKELY), rtol=1e-3, atol=0
    )


@pytest.mark.parametrize("settings", MODELS["gpt2"], ids=str)
@torch.no_grad()
def test_gpt2_keeps_its_logits(settings: dict[str, Any], tmp_path: Path, caplog: Any, capsys: Any) -> None:
    """Compare in plain torch, in fairseq, and again in transformers with the exported model.

    Importing prints the flags of fairseq-train. Loading an imported model warns that its ids differ from those of the
    source.
    """
    model = random_model("gpt2", "tiny", **settings)
    source, expected = saved(model, tmp_path / "hf"), model(tokens()).logits
    folder, ids = imported(source, tmp_path / "out", "--pos-enc", "learned"), NEW[tokens()]
    assert " ".join(checkpoint.flags(read(folder / "checkpoint.pt", causal=True))) in capsys.readouterr().out
    own = fairseq_posenc.load(source)(tokens())
    close(own[..., :WORDS], expected)
    close(own.log_softmax(-1)[..., :WORDS], expected.log_softmax(-1))
    assert "the model takes the ids" not in caplog.text
    compare(fairseq_posenc.load(folder)(ids), expected)
    assert f"the model takes the ids of {folder}/dict.txt, in fairseq's order" in caplog.text
    compare(in_fairseq(folder)(ids)[0], expected)
    assert main(["export-hf", str(folder / "checkpoint.pt"), "--output", str(tmp_path / "model")]) == 0
    compare(in_transformers(tmp_path / "model")(ids).logits, expected)


@torch.no_grad()
def test_old_files_of_gpt2_are_read(tmp_path: Path) -> None:
    """They have no prefix, and contain masks."""
    model = random_model("gpt2", "tiny")
    path = saved(model, tmp_path / "hf") / "model.safetensors"
    weights = {name.removeprefix("transformer."): tensor for name, tensor in load_file(path).items()}
    masks = {"h.0.attn.bias": torch.ones(1, 1, LENGTH, LENGTH).tril(), "h.0.attn.masked_bias": torch.zeros(())}
    save_file({**weights, **masks}, path, metadata={"format": "pt"})
    close(fairseq_posenc.load(tmp_path / "hf")(tokens())[..., :WORDS], model(tokens()).logits)
    assert not read(tmp_path / "hf", causal=True).unused


@torch.no_grad()
def test_a_padded_text_has_the_same_logits(tmp_path: Path) -> None:
    """GPT-2 has no padding symbol, so any id may stand under a mask of 0, also those of <pad> in other models."""
    model, ids = random_model("gpt2", "tiny"), torch.tensor([[END, 1, 1, 5], [1, 0, 3, END]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])
    own = fairseq_posenc.load(saved(model, tmp_path / "hf"))(ids, mask)
    close(own[..., :WORDS][mask.bool()], model(ids, attention_mask=mask).logits[mask.bool()])


def test_an_untrained_gpt2_is_imported_with_a_note(tmp_path: Path) -> None:
    """The biases of its last layer norm are 0, so no vector has a low logit for every text."""
    config = transformers.GPT2Config(WORDS, LENGTH, n_embd=16, n_layer=1, n_head=2, eos_token_id=END)
    source = read(saved(transformers.GPT2LMHeadModel(config), tmp_path / "hf"), causal=True)
    assert "have the logit 0" in source.notes[0]
    assert all(tensor.isfinite().all() for tensor in source.tensors.values())
