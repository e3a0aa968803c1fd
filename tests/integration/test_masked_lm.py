"""Test masked language models: fairseq's RoBERTa with any encoding, and the positions that the encoding gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_posenc.encodings import get, names, spec_of
from fairseq_posenc.models.masked_lm import pair_segments
from fairseq_posenc.positions import Positions, restart_ids

from . import masked_lm
from .cases import in_turn, serves
from .masked_lm import LENGTH, STOCK, STOCK_TASK

PAD, BOS, EOS = 1, 0, 2


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return masked_lm.write_corpus(tmp_path_factory.mktemp("corpus") / "data-bin")


ENCODERS = [(spec_of(name), None) for name in names() if serves(spec_of(name), None, causal=False)]


# -- compared with stock fairseq --------------------------------------------------------------------------


def copied_to(stock: Any, ours: Any) -> None:
    """Copy our weights with learned positions into a stock model."""
    prefix = "encoder.sentence_encoder."
    state = {name: tensor for name, tensor in ours.state_dict().items() if ".pos." not in name}
    table = ours.encoder.sentence_encoder.pos.learned.weight.detach()
    state[f"{prefix}embed_positions.weight"] = torch.cat([torch.zeros(PAD + 1, table.shape[1]), table])
    stock.load_state_dict(state)


@pytest.mark.parametrize("more", [[], ["--encoder-normalize-before"], ["--untie-weights-roberta"]])
def test_learned_positions_are_stock_roberta(data: Path, more: list[str]) -> None:
    """Names, weights, masks and logits are the same, and the numbers of parameters except for unused rows."""
    ours, task = masked_lm.built(data, *more)
    theirs, their_task = masked_lm.built(data, *more, model=STOCK, task=STOCK_TASK)
    copied_to(theirs, ours)
    counts = [sum(p.numel() for p in model.parameters()) for model in (theirs, ours)]
    assert counts[0] - counts[1] == (PAD + 1) * 16
    for mine, stock in zip(masked_lm.batches(task), masked_lm.batches(their_task), strict=True):
        assert (mine["net_input"]["src_tokens"] == stock["net_input"]["src_tokens"]).all()
        assert (mine["target"] == stock["target"]).all()
        on = mine["target"].ne(PAD)
        logits = [model(**batch["net_input"], masked_tokens=on)[0] for model, batch in ((ours, mine), (theirs, stock))]
        torch.testing.assert_close(*logits, rtol=1e-5, atol=1e-5)


def test_an_untrained_model_starts_as_bert_does(data: Path) -> None:
    model, _ = masked_lm.built(data, "--encoder-embed-dim", 64, "--pos-enc", "m4")
    weights = {name: p for name, p in model.named_parameters() if p.dim() == 2 and ".pos." not in name}
    assert any("self_attn.q_proj" in name for name in weights)
    for name, weight in weights.items():
        assert weight.std().item() == pytest.approx(0.02, rel=0.2), name


# -- every encoding ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", in_turn(ENCODERS))
def test_every_encoding_trains(data: Path, case: tuple[str, None]) -> None:
    run = masked_lm.train(data, "--pos-enc", case[0], "--max-update", 3)
    assert len(run.losses) == 3
    assert torch.isfinite(torch.tensor(run.losses)).all()
    touched = {key for key, p in run.model.named_parameters() if p.grad is not None}
    position = {key for key, _ in run.model.named_parameters() if ".pos." in key}
    assert position <= touched


def test_a_model_learns(data: Path) -> None:
    losses = masked_lm.train(data, "--pos-enc", "shaw", "--max-epoch", 25, "--encoder-embed-dim", 32).losses
    assert sum(losses[-5:]) / 5 < losses[0] - 0.7


# -- positions that the encoding gets ---------------------------------------------------------------------


class Seen:
    """Record the positions of the last forward pass."""

    def __init__(self, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        stack = model.encoder.sentence_encoder
        check = stack.pos.check
        self.where: Positions | None = None

        def keep(where: Positions) -> None:
            self.where = where
            check(where)

        monkeypatch.setattr(stack.pos, "check", keep)


def test_sentences_are_those_before_masking(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, task = masked_lm.built(data, "--pos-enc", "sentence-restart", "--mask-prob", "0.6")
    seen, hidden = Seen(model, monkeypatch), 0
    for batch in masked_lm.batches(task, "train"):
        inputs = batch["net_input"]
        model(**inputs)
        assert seen.where is not None
        assert (seen.where.restart_ids == restart_ids(inputs["unmasked_tokens"], PAD, (BOS, EOS))).all()
        hidden += int((inputs["unmasked_tokens"].eq(EOS) & inputs["src_tokens"].ne(EOS)).sum())
    assert hidden > 10  # so the masked tokens would give other sentence boundaries


def test_the_tokens_before_masking_are_targets_where_masked(data: Path) -> None:
    _, task = masked_lm.built(data)
    for batch in masked_lm.batches(task, "train"):
        inputs, target = batch["net_input"], batch["target"]
        expected = torch.where(target.ne(PAD), target, inputs["src_tokens"])
        assert (inputs["unmasked_tokens"] == expected).all()


def test_without_them_sentences_are_not_guessed(data: Path) -> None:
    model, task = masked_lm.built(data, "--pos-enc", "sentence-restart", task=STOCK_TASK)
    with pytest.raises(ValueError, match="--task posenc_masked_lm"):
        model(**masked_lm.batches(task)[0]["net_input"])


def test_cls_is_the_first_token(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, task = masked_lm.built(data, "--pos-enc", "m4", "--pos-enc-args", "reset=vector")
    seen = Seen(model, monkeypatch)
    model(**masked_lm.batches(task)[0]["net_input"])
    assert seen.where is not None
    assert seen.where.cls_column is not None
    assert (seen.where.cls_column == 0).all()


def test_a_packed_sample_is_one_segment(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample contains several documents, and therefore two </s> in a row."""
    model, task = masked_lm.built(data, "--pos-enc", "learned+segments")
    seen, doubled = Seen(model, monkeypatch), 0
    for batch in masked_lm.batches(task, "train"):
        model(**batch["net_input"])
        assert seen.where is not None
        assert not seen.where.segments.any()
        doubled += int(pair_segments(batch["net_input"]["unmasked_tokens"], EOS, PAD).sum())
    assert doubled


def test_segments_of_pairs() -> None:
    """Test <s> a </s></s> b </s>, a single sentence, padding, and BERT's <s> a </s> b </s>."""
    tokens = torch.tensor([[0, 5, 2, 2, 6, 7, 2], [0, 5, 6, 2, 1, 1, 1], [0, 5, 2, 2, 6, 2, 1], [0, 5, 6, 2, 7, 8, 2]])
    expected = torch.tensor([[0, 0, 0, 1, 1, 1, 1], [0] * 7, [0, 0, 0, 1, 1, 1, 0], [0, 0, 0, 0, 1, 1, 1]])
    assert (pair_segments(tokens, EOS, PAD) == expected).all()


def test_classifying_pairs_gives_their_segments(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = masked_lm.built(data, "--pos-enc", "learned+segments")
    model.register_classification_head("pairs", num_classes=3)
    seen, tokens = Seen(model, monkeypatch), torch.tensor([[0, 5, 2, 2, 6, 7, 2]])
    logits, _ = model(tokens, classification_head_name="pairs")
    assert logits.shape == (1, 3)
    assert seen.where is not None
    assert seen.where.segments.tolist() == [[0, 0, 0, 1, 1, 1, 1]]


def test_given_segments_are_taken(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = masked_lm.built(data, "--pos-enc", "learned+segments")
    seen, tokens = Seen(model, monkeypatch), torch.tensor([[0, 5, 6, 2]])
    segments = torch.tensor([[0, 1, 1, 0]])
    model(tokens, segments=segments)
    assert seen.where is not None
    assert seen.where.segments is segments


# -- masks ------------------------------------------------------------------------------------------------


def words(batch: dict[str, Any], row: int) -> list[list[int]]:
    """Return the columns of each word of a sample."""
    groups: list[list[int]] = []
    after_special = True
    for column, token in enumerate(batch["net_input"]["unmasked_tokens"][row].tolist()):
        if token > 3 and (after_special or token < 4 + 8):
            groups.append([])
        if token > 3:
            groups[-1].append(column)
        after_special = token <= 3
    return groups


def test_whole_words_are_masked_together(data: Path) -> None:
    _, task = masked_lm.built(data, "--mask-whole-words", "--subwords", "sentencepiece", "--mask-prob", "0.4")
    several = 0
    for batch in masked_lm.batches(task, "train"):
        predicted: Tensor = batch["target"].ne(PAD)
        for row in range(len(predicted)):
            for columns in words(batch, row):
                masked = predicted[row, columns]
                assert masked.all() or not masked.any()
                several += int(masked.all()) * (len(columns) > 1)
            assert int(predicted[row].sum()) == sum(predicted[row, c].sum() for c in words(batch, row))
    assert several > 20


def test_other_epochs_have_other_masks_and_the_same_ones_again(data: Path) -> None:
    _, task = masked_lm.built(data, "--mask-whole-words", "--subwords", "sentencepiece")
    task.load_dataset("train")
    samples = task.dataset("train")

    def epoch(number: int) -> list[list[int]]:
        samples.set_epoch(number)
        return [samples[i]["net_input.src_tokens"].tolist() for i in range(8)]

    first = epoch(1)
    assert epoch(2) != first
    assert epoch(1) == first


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--mask-whole-words", "needs --subwords. Give one of sentencepiece, wordpiece, gpt2, fastbpe"),
        ("--subwords gpt2", "no effect without --mask-whole-words"),
        ("--mask-whole-words --subwords wordpiece --gpt2-encoder-json x", "no effect without --subwords gpt2"),
        ("--mask-whole-words --subwords wordpiece --mask-multiple-length 2", "Leave --mask-multiple-length"),
        ("--include-target-tokens", "Use --task masked_lm"),
    ],
)
def test_flags_without_effect_are_refused(data: Path, flags: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        masked_lm.built(data, *flags.split())


@pytest.mark.parametrize("scheme", ["wordpiece", "gpt2", "fastbpe"])
def test_a_dictionary_of_another_tokenizer_is_refused(data: Path, scheme: str) -> None:
    _, task = masked_lm.built(data, "--mask-whole-words", "--subwords", scheme)
    with pytest.raises(ValueError, match="scheme of the tokenizer that made these pieces"):
        task.load_dataset("train")


# -- limits ----------------------------------------------------------------------------------------------


def test_longer_than_the_task_is_refused(data: Path) -> None:
    model, _ = masked_lm.built(data)
    with pytest.raises(ValueError, match="--max-positions"):
        model(torch.full((1, LENGTH + 1), 5))


def test_encodings_of_pairs_are_for_masked_lms_too() -> None:
    """Translation models refuse these encodings, because they have no sentence pairs."""
    assert [name for name in names() if (name, None) in ENCODERS and get(name).needs_segments]
