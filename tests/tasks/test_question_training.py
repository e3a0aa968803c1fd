"""Test question generation with fairseq's commands: training, generation, prepared folders."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tomllib
import types
from pathlib import Path
from typing import Any

import fairseq_cli.generate
import fairseq_cli.interactive
import pytest
import torch

pytest.importorskip("fairseq")

import support_questions as q
from fairseq import checkpoint_utils, options
from integration import support
from omegaconf import OmegaConf

from fairseq_posenc.compat.checkpoints import CheckpointError, safe_load
from fairseq_posenc.data import question_pieces, question_text

FAST = ["--max-update", 60, "--lr", 0.005, "--max-tokens", 400]
#: All questions have four words. Without --min-len, fairseq's search would end after three hypotheses, even if they are
#: improbable and shorter than the right one.
SEARCH = ["--beam", 3, "--min-len", 4, "--max-len-b", 9]

REFUSED = tomllib.loads(Path(__file__).with_name("refused.toml").read_text("utf-8"))["folder"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return q.write_questions(tmp_path_factory.mktemp("questions") / "prepared")


@pytest.fixture(scope="module")
def copying(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a model that has learned to copy."""
    folder = tmp_path_factory.mktemp("copying")
    q.trained(data, "--pos-enc", "t5", *FAST, "--save-dir", folder)
    return folder


def generated(data: Path, folder: Path, *more: Any) -> dict[str, dict[int, str]]:
    """Return the lines S, T, H and D of fairseq-generate by item."""
    words = [data, "--user-dir", support.PLUGIN, "--path", folder / "checkpoint_last.pt", "--cpu", *q.TASK]
    words += [*SEARCH, "--batch-size", 4, *more]
    cfg = support.parse(words, options.get_generation_parser, arch="wav2vec2")
    text, _ = support.printed(fairseq_cli.generate.main, cfg)
    return {kind: _lines(text, kind) for kind in "STHD"}


def _lines(text: str, kind: str) -> dict[int, str]:
    matches = re.findall(rf"^{kind}-(\d+)\t(?:-?[\d.e+-]+\t)?(.*)$", text, re.MULTILINE)
    return {int(number): line for number, line in matches}


def references(data: Path) -> dict[int, str]:
    """Return the question of each item of the test set."""
    lines = (data / "test.surface.jsonl").read_text("utf-8").splitlines()
    return {number: json.loads(line)["references"][0] for number, line in enumerate(lines)}


# -- copying ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["fairseq", "gnmt"])
def test_words_that_were_never_seen_are_copied_and_spelled(form: str, data: Path, copying: Path) -> None:
    more = ["--lenpen", 0.6, "--lenpen-form", form, "--no-repeat-ngram-size", 3]
    output, expected = generated(data, copying, *more), references(data)
    right = [output["H"][number] == line for number, line in expected.items()]
    assert sum(right) >= 9, output["H"]
    assert output["T"] == expected
    assert output["D"] == output["H"]
    words = {line.split()[2] for line in expected.values()}
    assert all(words & set(line.split()) for line in output["S"].values())


def test_interactive_copies_too(data: Path, copying: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines = ["a </s> b Zanzibar c d", "e </s> Popocatepetl f g Zanzibar h", "b </s> d e a"]
    source = tmp_path / "lines.txt"
    source.write_text("\n".join(lines) + "\n", "utf-8")
    words = [data, "--user-dir", support.PLUGIN, "--path", copying / "checkpoint_last.pt", "--cpu", *q.TASK]
    words += [*SEARCH, "--input", source, "--buffer-size", 3, "--batch-size", 3]
    cfg = support.parse(words, options.get_interactive_generation_parser, arch="wav2vec2")
    text, _ = support.printed(fairseq_cli.interactive.main, cfg)
    hypotheses, sources = _lines(text, "H"), _lines(text, "S")
    assert [sources[i].split() for i in range(3)] == [line.replace("</s>", "").split() for line in lines]
    assert [hypotheses[i] for i in range(2)] == ["what is Zanzibar ?", "what is Popocatepetl ?"]


def test_validation_generates_and_scores(data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Replace the score by another function, and check that it receives texts."""
    seen: list[tuple[str, list[str]]] = []

    def rouge_l(hypothesis: str, references: list[str], *, units: str) -> float:
        assert units == "words"
        seen.append((hypothesis, references))
        return float(hypothesis in references)

    monkeypatch.setattr(question_text, "rouge_l", rouge_l)
    monkeypatch.delattr(checkpoint_utils.save_checkpoint, "best", raising=False)  # fairseq's best score so far
    more = ["--eval-rouge", "--valid-subset", "valid", "--best-checkpoint-metric", "rouge_l"]
    run = q.trained(data, *FAST, *more, "--maximize-best-checkpoint-metric", "--save-dir", tmp_path)
    texts = seen[-q.SIZES["valid"] :]
    assert sorted(r[0] for _, r in texts) == sorted(f"what is valid{i}x0 ?" for i in range(q.SIZES["valid"]))
    state = checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "checkpoint_best.pt"))
    mean = sum(text in references for text, references in texts) / len(texts)
    assert state["extra_state"]["best"] == pytest.approx(mean, abs=1e-3)
    assert mean > 0.5
    assert run.losses[-1] < run.losses[0] / 4


def test_checkpoints_from_before_copynet_keep_their_gate(data: Path, tmp_path: Path) -> None:
    """They have the option `no_copy`. Training goes on with --copy-mechanism gate only."""
    quick, folder = ["--max-update", 1], ["--save-dir", tmp_path]
    q.trained(data, *quick, "--copy-mechanism", "gate", *folder)
    file = tmp_path / "checkpoint_last.pt"
    expected = generated(data, tmp_path)
    state = safe_load(file)
    model = state["cfg"]["model"]
    options = model if isinstance(model, dict) else vars(model)
    assert options.pop("copy_mechanism") == "gate"
    options["no_copy"] = False
    torch.save(state, file)
    assert generated(data, tmp_path) == expected
    with pytest.raises(CheckpointError, match="--copy-mechanism is gate in the checkpoint, copynet here"):
        q.trained(data, "--max-update", 2, *folder)
    q.trained(data, "--max-update", 2, "--copy-mechanism", "gate", *folder)


# -- the loss ---------------------------------------------------------------------------------------------


def test_the_loss_is_the_papers(data: Path) -> None:
    """The loss is -log(p + 1e-6) over all tokens except padding; also check the mean probability of copying."""
    model, task = q.moved(data)
    criterion = task.build_criterion(OmegaConf.create({"_name": "question_generation", "sentence_avg": False}))
    batch = q.batch(task)
    loss, size, logged = criterion(model, batch)
    output = model(**batch["net_input"])
    p = model.get_normalized_probs(output, False).gather(2, batch["target"][..., None])[..., 0]
    real = batch["target"].ne(q.PAD)
    torch.testing.assert_close(loss, -(p + 1e-6).log()[real].sum())
    torch.testing.assert_close(logged["nll_loss"], -p.log()[real].sum())
    torch.testing.assert_close(logged["copied"], (1 - torch.sigmoid(output[1]["copied"].gate))[real].sum())
    assert size == int(real.sum())
    each, _, _ = criterion(model, batch, reduce=False)
    torch.testing.assert_close(each.sum(), loss)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--criterion label_smoothed_cross_entropy --label-smoothing 0.1", "--label-smoothing"),
        ("--criterion question_generation --eval-rouge", "--eval-rouge needs"),
    ],
)
def test_a_loss_that_makes_no_sense_is_refused(
    arguments: str, said: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    with pytest.raises(ValueError, match=said):
        q.trained(data, *arguments.split(), "--max-update", 1)


def test_another_model_has_another_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = support.write_corpus(tmp_path / "data-bin")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="--criterion question_generation needs --arch posenc_question_generation"):
        support.train(corpus, "--criterion", "question_generation", "--max-update", 1)
    assert os.listdir() == ["data-bin"]  # without --save-dir, fairseq would write crash.pt here


# -- prepared folders -------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["message"])
def test_a_folder_that_is_not_whole_is_refused(case: dict[str, Any], data: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(data, tmp_path / "broken")
    (folder / case["file"]).unlink()
    if "text" in case:
        (folder / case["file"]).write_text(case["text"] * case.get("times", 1), "utf-8")
    with pytest.raises((ValueError, FileNotFoundError), match=case["message"]):
        q.built(folder)[1].load_dataset("test")


def test_text_is_cut_and_joined_as_the_folder_says(
    data: Path, copying: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Replace the module that splits text into pieces."""

    class Shouted:
        def cut(self, text: str) -> list[Any]:
            return [types.SimpleNamespace(name=word) for word in text.lower().split()]

        def join(self, pieces: list[str]) -> str:
            return "_".join(pieces).upper()

    monkeypatch.setattr(question_pieces, "load", lambda folder: Shouted())
    folder = tmp_path / "prepared"
    shutil.copytree(data, folder)
    (folder / "questions.json").write_text('{"units": "spaces"}', "utf-8")
    output = generated(folder, copying)
    assert {number: line.upper().replace(" ", "_") for number, line in output["H"].items()} == output["D"]
    assert output["H"] == generated(data, copying)["H"]
    _, task = q.built(folder)
    assert task.spelled.units == "spaces"
    ids, _ = task.get_interactive_tokens_and_lengths(["A B </s> what Zanzibar"], task.build_bpe(None).encode)
    assert task.source_dictionary.string(ids[0]) == "a b what zanzibar"
    assert ids[0].tolist()[:4] == [q.BOS, q.FIRST, q.FIRST + 1, q.EOS]
