"""Test that the commands of docs/tutorial.md work without changes, from raw text to sacreBLEU."""

from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path

import pytest
import support_warm

from .support import ROOT

pytest.importorskip("sentencepiece")
pytest.importorskip("sacrebleu")

PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
WORDS = {"en": "a cat dog sees old small house tree red finds".split()}
WORDS["de"] = "ein Katze Hund sieht alt klein Haus Baum rot findet".split()
SIZES = {"train": 60, "valid": 5, "test": 6}


def test_the_commands_of_the_page_score_a_model(tmp_path: Path) -> None:
    rng = random.Random(1)
    (tmp_path / "raw").mkdir()
    for split, size in SIZES.items():
        pairs = [[rng.randrange(10) for _ in range(rng.randint(2, 9))] for _ in range(size)]
        for language, words in WORDS.items():
            text = "".join(" ".join(words[number] for number in pair) + "\n" for pair in pairs)
            (tmp_path / "raw" / f"{split}.{language}").write_text(text, encoding="utf-8")
    commands = "\n".join(re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL))
    environment = {**os.environ, "UPDATES": "2", "PYTHONPATH": str(ROOT)}
    for name in ("NAME", "SEED", "WARMUP"):
        environment.pop(name, None)
    ran = support_warm.shell(commands, tmp_path / "programs", cwd=tmp_path, env=environment)
    assert ran.returncode == 0, ran.stderr[-2000:]
    scores, end = json.JSONDecoder().raw_decode(ran.stdout, ran.stdout.rindex("[\n"))
    assert [score["name"] for score in scores] == ["BLEU", "chrF2"]
    assert len(ran.stdout[end:].splitlines()) == 2, "the rest of a line, and one translation of the user's sentence"
    # fairseq's own order differs, so the page must sort.
    lines = (tmp_path / "generated" / "rope-1" / "generate-test.txt").read_text(encoding="utf-8").splitlines()
    numbers = [int(line[2:].partition("\t")[0]) for line in lines if line.startswith("D-")]
    assert numbers != sorted(numbers)
    texts = {int(line[2:].split("\t")[0]): line.split("\t")[2] for line in lines if line.startswith("D-")}
    hypotheses = (tmp_path / "rope-1.de").read_text(encoding="utf-8").splitlines()
    assert hypotheses == [texts[number] for number in range(SIZES["test"])]
    # fairseq numbers the sentences as the test set does, so the sources match line by line.
    sources = {int(line[2:].split("\t")[0]): line.split("\t")[1] for line in lines if line.startswith("S-")}
    raw = (tmp_path / "raw" / "test.en").read_text(encoding="utf-8").splitlines()
    assert [sources[number] for number in range(len(raw))] == raw
