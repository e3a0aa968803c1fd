"""Test that the commands of docs/tutorial.md and of the README work, from raw text to sacreBLEU."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from .support import ROOT

pytest.importorskip("sentencepiece")
pytest.importorskip("sacrebleu")

TUTORIAL, README = ((ROOT / page).read_text(encoding="utf-8") for page in ("docs/tutorial.md", "README.md"))
WORDS = {"en": "a cat dog sees old small house tree red finds".split()}
WORDS["de"] = "ein Katze Hund sieht alt klein Haus Baum rot findet".split()
SIZES = {"train": 60, "valid": 5, "test": 6}


def run(commands: str, folder: Path, **environment: str) -> CompletedProcess[str]:
    """Run commands of bash in a folder, and check that all of them succeed."""
    variables = {name: value for name, value in os.environ.items() if name not in ("NAME", "SEED", "WARMUP")}
    variables |= {"PYTHONPATH": str(ROOT), **environment}
    command = ["bash", "-euo", "pipefail", "-c", commands]
    ran = subprocess.run(command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran


def scores_in(ran: CompletedProcess[str]) -> tuple[list[Any], str]:
    """Return the scores that sacrebleu printed, and what was printed after them."""
    scores, end = json.JSONDecoder().raw_decode(ran.stdout, ran.stdout.rindex("[\n"))
    return scores, ran.stdout[end:]


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CompletedProcess[str]]:
    """Return the folder in which the commands of the tutorial ran on a tiny corpus, and what they printed."""
    folder, rng = tmp_path_factory.mktemp("tutorial"), random.Random(1)
    (folder / "raw").mkdir()
    for split, size in SIZES.items():
        pairs = [[rng.randrange(10) for _ in range(rng.randint(2, 9))] for _ in range(size)]
        for language, words in WORDS.items():
            text = "".join(" ".join(words[number] for number in pair) + "\n" for pair in pairs)
            (folder / "raw" / f"{split}.{language}").write_text(text, encoding="utf-8")
    commands = "\n".join(re.findall(r"```bash\n(.*?)```", TUTORIAL, re.DOTALL))
    return folder, run(commands, folder, UPDATES="2")


def test_the_commands_of_the_tutorial_score_a_model(tutorial: tuple[Path, CompletedProcess[str]]) -> None:
    """fairseq sorts the sentences by length, so the page has to restore the order of the test set."""
    folder, ran = tutorial
    scores, rest = scores_in(ran)
    assert [score["name"] for score in scores] == ["BLEU", "chrF2"]
    assert len(rest.splitlines()) == 2, "the rest of a line, and one translation of the user's sentence"
    lines = [line.split("\t") for line in lines_of(folder / "generated" / "rope-1" / "generate-test.txt")]
    sources, texts = ({int(line[0][2:]): line[-1] for line in lines if line[0][:2] == kind} for kind in ("S-", "D-"))
    assert [*texts] != sorted(texts)
    assert lines_of(folder / "rope-1.de") == [texts[number] for number in range(SIZES["test"])]
    assert lines_of(folder / "raw" / "test.en") == [sources[number] for number in range(SIZES["test"])]


def test_the_commands_of_the_readme_train_translate_and_score(
    tutorial: tuple[Path, CompletedProcess[str]], tmp_path: Path
) -> None:
    """The data of the tutorial take the place of those of `make demo`, which are also text in two languages."""
    demo = tmp_path / "results" / "demo"
    for path in [*(tutorial[0] / "data-bin").iterdir(), tutorial[0] / "raw" / "test.de"]:
        renamed = demo / path.parent.name / path.name.replace("en-de", "en-inv").replace(".de", ".inv")
        renamed.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, renamed)
    (tmp_path / "fairseq_posenc").symlink_to(ROOT / "fairseq_posenc")
    section = README.partition("## Train and translate\n")[2].partition("\n## ")[0]
    (commands,) = re.findall(r"```bash\n(.*?)```", section, re.DOTALL)
    assert commands.count("--max-update 300 ") == 1
    ran = run(commands.replace("--max-update 300 ", "--max-update 2 "), tmp_path)
    assert [score["name"] for score in scores_in(ran)[0]] == ["BLEU", "chrF2"]
    translations = lines_of(tmp_path / "checkpoints" / "shaw" / "test.inv")
    assert len(translations) == SIZES["test"]
    assert "▁" not in "".join(translations)
