"""Test that an imported GPT-2 keeps its logits, and that other decoders are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("fairseq")
pytest.importorskip("transformers")

import transformers
from integration import lm, support
from safetensors.torch import load_file, save_file
from support_exchange import close, imported, in_fairseq, in_transformers

import fairseq_posenc
from fairseq_posenc.__main__ import main
from fairseq_posenc.hub import checkpoint, hugging_face
from fairseq_posenc.hub.pretrained import read

#: Size of the vocabulary; its last id is the end of text.
WORDS, LENGTH = 34, 20
END = WORDS - 1
#: Ids in fairseq's order.
NEW = torch.tensor([*range(4, WORDS + 3), 2])
UNKNOWN_TO_GPT2 = [0, 1, 3]


def random_gpt2(folder: Path, **settings: Any) -> Any:
    """Return a GPT-2 with random weights, after saving it."""
    sizes = {"n_positions": LENGTH, "n_embd": 16, "n_layer": 2, "n_head": 2}
    ends = {"bos_token_id": END, "eos_token_id": END}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(WORDS, **{**sizes, **ends, **settings}))
    support.move(model)
    model.save_pretrained(folder)
    return model.eval()


def tokens() -> Tensor:
    return torch.randint(0, WORDS, (2, LENGTH), generator=torch.Generator().manual_seed(0))


@torch.no_grad()
def theirs(model: Any) -> Tensor:
    return model(tokens()).logits


def compare(actual: Tensor, expected: Tensor) -> None:
    """Compare logits and log-probabilities. Symbols that GPT-2 does not have must not change the probabilities."""
    close(actual[..., NEW], expected)
    close(actual.log_softmax(-1)[..., NEW], expected.log_softmax(-1))
    torch.testing.assert_close(
        actual[..., UNKNOWN_TO_GPT2], torch.full((2, LENGTH, 3), hugging_face.UNLIKELY), rtol=1e-3, atol=0
    )


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"tie_word_embeddings": False},
        {"activation_function": "relu", "n_inner": 24},
        {"activation_function": "gelu", "reorder_and_upcast_attn": True},
    ],
    ids=str,
)
def test_gpt2_keeps_its_logits(settings: dict[str, Any], tmp_path: Path) -> None:
    """Compare in plain torch, in fairseq, and again in transformers with the exported model."""
    model = random_gpt2(tmp_path / "hf", **settings)
    folder, ids = imported(tmp_path / "hf", tmp_path / "out", "--pos-enc", "learned"), NEW[tokens()]
    with torch.no_grad():
        own = fairseq_posenc.load(tmp_path / "hf")(tokens())
        close(own[..., :WORDS], theirs(model))
        close(own.log_softmax(-1)[..., :WORDS], theirs(model).log_softmax(-1))
        compare(fairseq_posenc.load(folder)(ids), theirs(model))
        compare(in_fairseq(folder)(ids)[0], theirs(model))
        if not settings:
            assert main(["export-hf", str(folder / "checkpoint.pt"), "--output", str(tmp_path / "model")]) == 0
            compare(in_transformers(tmp_path / "model")(ids).logits, theirs(model))


def test_old_files_of_gpt2_are_read(tmp_path: Path) -> None:
    """They have no prefix, and contain masks."""
    model = random_gpt2(tmp_path / "hf")
    path = tmp_path / "hf" / "model.safetensors"
    weights = {name.removeprefix("transformer."): tensor for name, tensor in load_file(path).items()}
    masks = {f"h.{i}.attn.bias": torch.ones(1, 1, LENGTH, LENGTH).tril() for i in range(2)}
    save_file({**weights, **masks}, path, metadata={"format": "pt"})
    with torch.no_grad():
        close(fairseq_posenc.load(tmp_path / "hf")(tokens())[..., :WORDS], theirs(model))


def test_a_padded_text_has_the_same_logits(tmp_path: Path) -> None:
    """GPT-2 has no padding symbol, so any id may stand under a mask of 0, also those of <pad> in other models."""
    model, ids = random_gpt2(tmp_path / "hf"), torch.tensor([[END, 1, 1, 5], [1, 0, 3, END]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])
    with torch.no_grad():
        expected = model(ids, attention_mask=mask).logits
        own = fairseq_posenc.load(tmp_path / "hf")(ids, mask)
    close(own[..., :WORDS][mask.bool()], expected[mask.bool()])


def test_loading_says_which_ids_an_imported_model_takes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    random_gpt2(tmp_path / "hf")
    folder = imported(tmp_path / "hf", tmp_path / "out", "--pos-enc", "learned")
    fairseq_posenc.load(tmp_path / "hf")
    assert not caplog.records
    fairseq_posenc.load(folder)
    assert f"the model takes the ids of {folder}/dict.txt, in fairseq's order" in caplog.text


def test_another_encoding_replaces_the_positions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All other weights are copied, and training continues with the printed flags."""
    random_gpt2(tmp_path / "hf")
    folder = imported(tmp_path / "hf", tmp_path / "out", "--pos-enc", "shaw+t5", "--pos-enc-args", "clip=4")
    printed = capsys.readouterr().out
    assert "dropped: decoder.pos.learned.weight: --pos-enc shaw+t5 has no such table (learned+" in printed
    assert "new: decoder.pos.shaw.weight: drawn from" in printed
    assert "</s> is GPT-2's end of text" in printed
    flags = checkpoint.flags(read(folder / "checkpoint.pt", causal=True))
    assert " ".join(flags) in printed
    report = json.loads((folder / "report.json").read_text("utf-8"))
    source = read(tmp_path / "hf", causal=True)
    assert set(report["copied"]) == {name for name in source.tensors if ".pos." not in name}
    data = lm.write_corpus(tmp_path / "data-bin", words=WORDS - 1)
    start = ["--finetune-from-model", folder / "checkpoint.pt", "--save-dir", tmp_path / "save", "--no-save"]
    run = lm.train(data, *start, "--max-update", 1, "--lr", "1e-9", model=flags[4:], task=flags[:2])
    weights = in_fairseq(folder).state_dict()
    for name, tensor in run.model.state_dict().items():
        torch.testing.assert_close(tensor, weights[name], rtol=0, atol=1e-6)


def test_the_vocabulary_becomes_the_dictionary(tmp_path: Path) -> None:
    random_gpt2(tmp_path / "hf")
    pieces = {"<s>": 0, **{f"p{i}": i for i in range(1, END)}, "<|endoftext|>": END}
    (tmp_path / "hf" / "vocab.json").write_text(json.dumps(pieces), "utf-8")
    folder = imported(tmp_path / "hf", tmp_path / "out", "--pos-enc", "none")
    symbols = [line.split()[0] for line in (folder / "dict.txt").read_text("utf-8").splitlines()]
    assert symbols == ["madeupword0", *(f"p{i}" for i in range(1, END))]


def test_an_untrained_gpt2_is_imported_with_a_note(tmp_path: Path) -> None:
    """The biases of its last layer norm are 0, so no vector has a low logit for every text."""
    config = transformers.GPT2Config(WORDS, n_positions=LENGTH, n_embd=16, n_layer=1, n_head=2, eos_token_id=END)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "hf")
    (note,) = read(tmp_path / "hf", causal=True).notes
    assert "have the logit 0" in note


@pytest.mark.parametrize("kind", ["llama", "gpt_neox", None])
def test_other_decoders_are_refused(kind: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}), "utf-8")
    assert main(["import-hf", str(tmp_path), "--pos-enc", "rope", "--output", str(tmp_path / "out")]) == 1
    assert f"model_type is {kind}, but only bert, roberta, gpt2 can be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx is True, but only False"),
        ({"layer_norm_epsilon": 1e-6}, "layer_norm_epsilon is 1e-06, but only 1e-05"),
        ({"activation_function": "silu"}, "activation_function 'silu' is not supported"),
        ({"eos_token_id": 99}, "eos_token_id must be the id of the end of text, not 99"),
    ],
)
def test_settings_that_these_models_lack_are_refused(
    settings: dict[str, Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random_gpt2(tmp_path / "hf", **settings)
    assert main(["import-hf", str(tmp_path / "hf"), "--pos-enc", "rope", "--output", str(tmp_path / "out")]) == 1
    assert message in capsys.readouterr().err
