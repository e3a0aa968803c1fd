"""Test question answering from prepared windows to scores: the task, its loss, its head and its predictions."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("fairseq")

import support_squad as s
from integration import support
from oracles.oracle_ways import oracle
from support_recipes import called
from torch.nn import functional as F

from fairseq_posenc.compat import CheckpointError
from fairseq_posenc.data import spans
from fairseq_posenc.hub.pretrained import read
from fairseq_posenc.metrics import squad
from recipes.lib.finetuning import question_scores, questions

DEV = s.squad(40, 2)
DEV_ANSWER = next(iter(s.texts(DEV).values()))[0]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("squad")
    s.checkpoint(folder / "plain")
    return folder


@pytest.fixture(scope="module")
def data(place: Path) -> Path:
    return s.toy(place, DEV)


# --- the model


def test_only_the_head_of_masked_language_modelling_does_not_learn(data: Path, place: Path) -> None:
    model, task = s.built(data, place / "plain" / "checkpoint.pt")
    (batch,) = support.batches(task, "valid", longest=24)
    loss, size, figures = task.build_criterion(support.parse(s.words(data, "x")).criterion)(model, batch)
    loss.backward()
    assert size == figures["sample_size"] == 40
    assert loss.item() / 40 == pytest.approx(math.log(20), abs=1.5)
    assert model.span_head.out_proj.weight.grad.abs().sum() > 0
    rests = [name for name, parameter in model.named_parameters() if not parameter.requires_grad]
    assert rests
    assert all(name.startswith("encoder.lm_head.") for name in rests)


def test_the_loss_is_the_mean_of_two_cross_entropies_whatever_the_pads(data: Path, place: Path) -> None:
    model, task = s.built(data, place / "plain" / "checkpoint.pt")
    criterion = task.build_criterion(support.parse(s.words(data, "x")).criterion)
    (batch,) = support.batches(task, "valid", longest=24)
    # The toy's windows are equally long.
    batch["net_input"]["src_tokens"] = F.pad(batch["net_input"]["src_tokens"], (0, 3), value=1)
    support.move(model)
    losses, _, figures = criterion(model, batch, reduce=False)
    for number in (0, 7):
        tokens = batch["net_input"]["src_tokens"][number]
        logits = model(tokens[tokens.ne(1)][None], spans=True)[0][0]
        parts = [F.cross_entropy(logits[:, k], batch[name][number]) for k, name in enumerate(("start", "end"))]
        torch.testing.assert_close(losses[number], (parts[0] + parts[1]) / 2, rtol=1e-4, atol=1e-5)
    assert figures["loss"].item() == pytest.approx(losses.sum().item())


def test_a_masked_lm_reads_a_checkpoint_with_the_head_and_without(data: Path, place: Path) -> None:
    model, _ = s.built(data, place / "plain" / "checkpoint.pt")
    weights = model.state_dict()
    model.load_state_dict({name: w for name, w in weights.items() if "span_head" not in name}, strict=True)
    del model.span_head
    model.load_state_dict(weights, strict=True)
    with pytest.raises(ValueError, match="--task posenc_squad"):
        model(torch.tensor([[0, 5, 2]]), spans=True)


def test_windows_beyond_what_an_encoding_defines_are_refused_with_the_cure(data: Path, place: Path) -> None:
    source = s.checkpoint(place / "l", "learned")
    files = ("--train", place / "train.json", "--eval", place / "dev.json.gz", "--length", 40)
    wider = s.prepared(place / "wider", "--checkpoint", source, *files)
    with pytest.raises(ValueError, match=r"up to 40 pieces, .* up to 32 positions. .*extend=interpolate,extend_to=40"):
        s.built(wider, source)
    for args in ("extend=repeat", "extend=interpolate,extend_to=40"):
        model, _ = s.built(wider, source, "--pos-enc-args", args)
        assert model(torch.full((1, 40), 7), spans=True)[0].shape == (1, 40, 2)
    both = s.checkpoint(place / "both", "learned+diet-abs")
    cure = r"--pos-enc-args learned\.extend=repeat,diet_abs\.extend=repeat, or (.*)\.$"
    with pytest.raises(ValueError, match=cure) as error:
        s.built(wider, both)
    s.built(wider, both, "--pos-enc-args", re.search(cure, str(error.value))[1])
    s.built(wider, s.checkpoint(place / "sh", "shaw"))
    with pytest.raises(ValueError, match=r"up to 32 positions\. Use shorter windows \(.*\), or another encoding\.$"):
        s.built(wider, s.checkpoint(place / "lin", "linformer"))
    model, _ = s.built(data, source, "--segments", "head")
    assert "segments" in model.encoder.sentence_encoder.pos.members


def test_another_folder_or_split_is_refused(data: Path, place: Path) -> None:
    source = place / "plain" / "checkpoint.pt"
    with pytest.raises(CheckpointError, match=r"nothing is not a folder"):
        s.built(place / "nothing", source)
    _, task = s.built(data, source)
    with pytest.raises(CheckpointError, match=r"cannot read the windows .* one of the splits: train, valid"):
        task.load_dataset("test")


# --- all of it


@pytest.fixture(scope="module")
def trained(data: Path, place: Path) -> tuple[Path, list[float]]:
    source = s.checkpoint(place / "shaw", "shaw", layers=2, dim=32)
    saved = ["--save-dir", place / "saved", "--no-epoch-checkpoints", "--valid-subset", "valid"]
    run = support.trained(s.words(data, source, *saved, "--max-epoch", 6, "--lr", 0.01))
    return place / "saved" / "checkpoint_last.pt", run.losses


def test_the_toy_is_learned_and_its_answers_are_scored(trained: Any, data: Path, place: Path, capsys: Any) -> None:
    checkpoint, losses = trained
    assert np.mean(losses[:3]) > 2
    assert np.mean(losses[-5:]) < 0.3
    assert not [name for name in read(checkpoint).tensors if "span_head" in name]  # export-hf leaves the head out
    folder = place / "predictions"
    called(questions, "--checkpoint", checkpoint, "--data", data, "--output", folder, "--cpu", "--n-best", 4)
    predictions, nbest, odds = s.predictions(folder)
    gold = s.texts(DEV)
    assert list(predictions) == list(nbest) == list(odds) == list(gold)
    for name, entries in nbest.items():
        assert entries[0]["text"] == predictions[name]
        assert 1 <= len(entries) <= 4
        assert sum(answer["probability"] for answer in entries) == pytest.approx(1)
        assert odds[name] < 0
    right = sum(predictions[name] == entries[0] for name, entries in gold.items())
    assert right >= 36
    output = capsys.readouterr().out
    result = json.loads(output[output.index("{") :])
    assert result["em"] == result["exact_match"] == 100 * right / 40


def test_no_answers_and_their_odds(trained: Any, place: Path) -> None:
    checkpoint, _ = trained
    file = s.written(place / "v2.json", s.squad(30, 7, without=True))
    source = place / "plain" / "checkpoint.pt"
    data = s.prepared(place / "v2", "--checkpoint", source, "--version", "2.0", "--eval", file, "--length", 24)
    folder = place / "v2.predictions"
    called(questions, "--checkpoint", checkpoint, "--data", data, "--output", folder, "--cpu", "--n-best", 3)
    predictions, nbest, odds = s.predictions(folder)
    for name, entries in nbest.items():
        assert "" in [entry["text"] for entry in entries]
        assert (predictions[name] == "") == (odds[name] > 0)
    result = question_scores.scored(data, "valid", folder, 0.0)
    assert result["best_f1"] >= result["f1"]
    assert {"HasAns_f1", "NoAns_f1", "best_exact_thresh", "best_f1_thresh"} <= set(result)
    script = oracle("transformers.data.metrics.squad_metrics").squad_evaluate
    examples = [
        SimpleNamespace(qas_id=entry.id, answers=[{"text": text} for text in entry.answers])
        for entry in spans.questions(data, "valid")
    ]
    theirs = script(examples, s.read(folder / question_scores.TEXTS), odds, 0.0)  # as docs/fine-tuning.md says
    assert {name: result[name] for name in theirs} == pytest.approx(dict(theirs))
    low = place / "v2.low"
    called(questions, "--checkpoint", checkpoint, "--data", data, "--output", low, "--cpu", "--null-threshold", -1000)
    assert set(s.read(low / "predictions.json").values()) == {""}
    assert all(s.read(low / question_scores.TEXTS).values())
    silent = question_scores.scored(data, "valid", low, -1000)  # at that threshold
    assert (silent["HasAns_f1"], silent["NoAns_f1"]) == (0, 100)


def test_right_answers_that_have_less_than_100_end_the_run(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, gold = result = question_scores.baselines(data, "valid")
    assert (result[gold]["em"], result[gold]["f1"]) == (100, 100)
    monkeypatch.setattr(squad.Rules, "exact", lambda self, gold, predicted: float(gold == predicted != DEV_ANSWER))
    with pytest.raises(SystemExit, match="the gold answers must score 100"):
        question_scores.baselines(data, "valid")


def test_an_answer_without_words_is_told_and_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    scores = question_scores._score_gold({"q1": ["b c"], "q2": ["the"]}, squad.V11)
    assert (scores["em"], scores["f1"]) == (100, 50)
    assert "Answers without words have F1 0 by squad-v1.1: q2." in capsys.readouterr().out


def test_another_vocabulary_or_another_form_of_windows_is_refused(trained: Any, data: Path, place: Path) -> None:
    """The other vocabulary has the same pieces in another order; the other windows have one separator, not two."""
    checkpoint, _ = trained
    other = shutil.copytree(data, place / "other")
    lines = (other / "dict.txt").read_text().splitlines()
    (other / "dict.txt").write_text("\n".join([lines[1], lines[0], *lines[2:]]) + "\n")
    with pytest.raises(SystemExit, match=r"other/dict.txt differs from the dictionary with which the model was"):
        questions.load(checkpoint, other, gpu=False)
    source, words = place / "plain" / "checkpoint.pt", ["--eval", place / "dev.json.gz", "--length", 24]
    folder = s.prepared(place / "bert", "--checkpoint", source, *words, "--separators", 1)
    with pytest.raises(SystemExit, match=r"with other separators\. Prepare .* --separators 2"):
        questions.load(checkpoint, folder, gpu=False)
    wider = s.prepared(place / "longer", "--checkpoint", source, *words[:3], 28)
    assert questions.load(checkpoint, wider, gpu=False)[1].max_positions() == 28


def test_the_baseline_is_a_span_of_the_mean_length_with_the_words_of_the_question() -> None:
    cut = question_scores.Words("words", cased=False)
    assert question_scores.mean_length([["a b"], ["a b c d"], ["a b c", "a"]], cut) == 3
    assert question_scores.overlap("A b. Where is Zorn? The hill.", "where is it", 3, cut) == ". Where is"
    assert question_scores.overlap("too short", "x", 5, cut) == "too short"
    assert [question_scores.units([text]) for text in ("of the books 日本", "中国是a")] == ["words", "chars"]
