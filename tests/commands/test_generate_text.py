"""Test `generate-text` on a tiny trained language model: what it draws from, what it refuses, and its texts."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fairseq")

import torch
from fairseq import checkpoint_utils
from integration import lm

from fairseq_posenc.__main__ import main
from fairseq_posenc.generation.sampling import sampler

SAMPLING: dict[str, Any] = tomllib.loads(Path(__file__).with_name("sampling.toml").read_text("utf-8"))
PROMPT = "w3 w5 w7"
KEPT = Path(__file__).parents[1] / "kept" / "checkpoint.pt"


def generated(capsys: pytest.CaptureFixture[str], *arguments: Any) -> list[dict[str, Any]]:
    assert main(["generate-text", "--json", *map(str, arguments)]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return rows


def recomputed(path: Path, prompt: str, length: int) -> str:
    """Return the greedy text of a model without memory, computed from the first token at each step."""
    models, _, task = checkpoint_utils.load_model_ensemble_and_task([str(path)], {"data": str(path.parent)})
    dictionary, model = task.source_dictionary, models[0].eval()
    ids = [dictionary.eos(), *(dictionary.index(word) for word in prompt.split())]
    for _ in range(length):
        logits = model(torch.tensor([ids]))[0][0, -1]
        logits[[dictionary.pad(), dictionary.bos()]] = float("-inf")
        ids.append(int(logits.argmax()))
    words = ["\n" if number == dictionary.eos() else dictionary.symbols[number] for number in ids[1:]]
    return " ".join(words).replace(" \n", "\n").replace("\n ", "\n")


@pytest.mark.parametrize("prompt", [PROMPT, ""])
def test_greedy_text_is_as_recomputed(prompt: str, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = generated(capsys, "--checkpoint", KEPT, "--prompt", prompt, "--length", 15, "--temperature", 0)
    assert row["text"] == recomputed(KEPT, prompt, 15)
    assert (row["prompt"], row["sample"], row["tokens"]) == (1, 1, 15)
    assert row["log_probability"] < 0


def test_the_seed_decides_the_samples_of_each_prompt(
    tmp_path: Path, checkpoint: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "prompts.txt").write_text(f"{PROMPT}\n\n{PROMPT}\n", "utf-8")
    base = ["--checkpoint", KEPT, "--input", tmp_path / "prompts.txt", "--samples", 2, "--length", 12]
    rows = generated(capsys, *base)
    assert [(row["prompt"], row["sample"]) for row in rows] == [(p, s) for p in (1, 2, 3) for s in (1, 2)]
    texts = [row["text"] for row in rows]
    assert texts[0] == texts[4]
    assert texts[0] != texts[1]
    assert all(text.startswith(PROMPT) for text in texts[:2])
    assert generated(capsys, *base) == rows
    assert generated(capsys, *base, "--seed", 2) != rows
    longer = ["--prompt", PROMPT, "--length", 3 * lm.SEGMENT]
    (only,) = generated(capsys, "--checkpoint", KEPT, *longer, "--until-eos", "--top-k", 5)
    assert "\n" not in only["text"]
    (row,) = generated(capsys, "--checkpoint", checkpoint("memory"), *longer)
    assert row["tokens"] == 3 * lm.SEGMENT
    (row,) = generated(capsys, "--checkpoint", checkpoint("short"), "--prompt", PROMPT, "--length", 5)
    assert row["tokens"] == 5, "the longest text that the error about its length allows"


def test_texts_are_printed_and_unknown_words_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--checkpoint", str(KEPT), "--prompt", f"{PROMPT} nonsense", "--length", "2"]
    assert main(["generate-text", *words, "--samples", "2"]) == 0
    printed = capsys.readouterr()
    assert f"=== prompt 1, text 2 ===\n{PROMPT} <unk>" in printed.out
    assert re.search(r"prompt 1 contains tokens \(1 of 4\) that are not in .*dict\.txt: they are <unk>", printed.err)


def test_prompts_are_lines_that_end_at_line_feeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "prompts"
    path.write_bytes(b"w1\rw2\r\nw3\n")
    rows = generated(capsys, "--checkpoint", KEPT, "--input", path, "--length", 1)
    assert [(row["prompt"], row["text"].rsplit(maxsplit=1)[0]) for row in rows] == [(1, "w1 w2"), (2, "w3")]


@pytest.mark.parametrize(("options", "allowed"), SAMPLING["cases"])
def test_tokens_are_drawn_from_the_allowed_set(options: dict[str, Any], allowed: list[int]) -> None:
    """Token 4 is the most probable one, but excluded."""
    log_probs = torch.tensor(SAMPLING["probabilities"]).log().expand(400, -1)
    generator = torch.Generator().manual_seed(0)
    settings = {"temperature": 1.0, "top_k": None, "top_p": None, **options}
    chosen = sampler(**settings, excluded=[4], generator=generator)(log_probs)
    assert sorted(set(chosen.tolist())) == allowed
    if not options:
        torch.testing.assert_close(chosen.eq(0).float().mean(), torch.tensor(0.5), rtol=0, atol=0.1)
