"""A checkpoint that this version wrote loads in later versions and generates the same text, also after export-hf.

The most probable token of each step is ahead of the second one by more than another machine can change, which is
tested, too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fairseq")

import torch

import fairseq_posenc
from fairseq_posenc.__main__ import main
from fairseq_posenc.compat import safe_load

from . import make

CHECKPOINT = make.FOLDER / "checkpoint.pt"
FACTS: dict[str, Any] = json.loads((make.FOLDER / "texts.json").read_text(encoding="utf-8"))
TEXTS: dict[str, str] = FACTS["texts"]
#: Least difference between the logits of the best and the second token; rounding changes logits by less than 1e-4.
MARGIN = 0.005


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the model that export-hf writes, in plain torch."""
    folder = tmp_path_factory.mktemp("kept") / "model"
    assert main(["export-hf", str(CHECKPOINT), "--output", str(folder)]) == 0
    assert list(folder.glob("*.safetensors"))
    return fairseq_posenc.load(folder).eval()


def symbols() -> list[str]:
    """Return the tokens by their ids; a line ends with </s>."""
    words = [line.split()[0] for line in (make.FOLDER / "dict.txt").read_text(encoding="utf-8").splitlines()]
    return ["<s>", "<pad>", "\n", "<unk>", *words]


def continued(model: Any, prompt: str) -> tuple[str, float]:
    """Return the greedy continuation, computed from the first token at each step, and the smallest margin."""
    names = symbols()
    ids, margins = [2, *(names.index(word) for word in prompt.split())], []
    with torch.no_grad():
        for _ in range(make.LENGTH):
            logits = model(torch.tensor([ids])).float()[0, -1]
            logits[[0, 1]] = float("-inf")
            best, second = logits.topk(2).values.tolist()
            margins.append(best - second)
            ids.append(int(logits.argmax()))
    text = " ".join(names[number] for number in ids[1:])
    return text.replace(" \n", "\n").replace("\n ", "\n"), min(margins)


def test_the_file_is_small_and_names_no_folder_of_a_machine() -> None:
    assert CHECKPOINT.stat().st_size < 300_000
    cfg = safe_load(CHECKPOINT)["cfg"]
    values = [str(value) for part in cfg.values() if isinstance(part, dict) for value in part.values()]
    assert {value for value in values if Path(value).is_absolute()} <= {"/tmp/plasma"}  # a default of fairseq


def test_it_generates_the_same_text() -> None:
    assert dict(zip(make.PROMPTS, make.generate(CHECKPOINT), strict=True)) == TEXTS


@pytest.mark.parametrize("prompt", make.PROMPTS)
def test_its_export_generates_the_same_text(exported: Any, prompt: str) -> None:
    text, margin = continued(exported, prompt)
    assert text == TEXTS[prompt]
    assert margin > MARGIN


def test_another_weight_gives_another_text(exported: Any) -> None:
    """The texts are not those of any model of this form."""
    with torch.no_grad():
        for parameter in exported.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)), alpha=0.2)
    assert continued(exported, make.PROMPTS[0])[0] != TEXTS[make.PROMPTS[0]]
