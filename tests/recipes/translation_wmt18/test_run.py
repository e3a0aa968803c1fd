"""Test a run of the translation recipe on a folder of text, in two directions, with fastBPE for each language."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support_subwords import NEEDS_FASTBPE

from recipes.lib.invented import sentences

ROOT = Path(__file__).resolve().parents[3]
RECIPE = ROOT / "recipes" / "translation_wmt18"
OPTIONS = "--direction en-xx,xx-en --tokenizer fastbpe --dictionary separate --train.share-all-embeddings false"
OPTIONS += " --train.max-update 2 --average 1 --pos-enc rope/t5 --device cpu"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "my corpus"
    sentences.write(sentences.generate({"train": 300, "val": 11, "test": 13}, seed=1), folder, ("en", "xx"))
    (folder / "train.xx.gz").write_bytes(gzip.compress((folder / "train.xx").read_bytes()))
    (folder / "train.xx").unlink()
    return folder


@pytest.mark.long  # a minute: every step starts fairseq
@NEEDS_FASTBPE
def test_directions_share_their_text_and_a_model_translates_raw_text(corpus: Path, tmp_path: Path) -> None:
    output, environment = tmp_path / "an output", {**os.environ, "VIRTUAL_ENV": sys.prefix}
    script = f"{RECIPE}/run.sh --preset smoke --corpus 'my corpus' {OPTIONS} --output 'an output'\n"
    script += f"{{ echo; cat 'my corpus/test.en'; }} | {RECIPE}/translate.sh 'an output' en-xx.rope--t5.s1 > text"
    command = ["bash", "-euo", "pipefail", "-c", script]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    rows = json.loads((output / "results.json").read_text(encoding="utf-8"))["results"]
    assert [(row["direction"], row["encoding"]) for row in rows] == [("en-xx", "rope/t5"), ("xx-en", "rope/t5")]
    assert all("chrF" in row for row in rows)
    assert sorted(path.parent.name for path in output.glob("*/data-bin")) == ["en-xx"]
    assert (output / "en-xx" / "raw" / "test.xx").read_bytes() == (corpus / "test.xx").read_bytes()
    translated = (output / "translations" / "en-xx.rope--t5.s1.xx").read_text(encoding="utf-8")
    assert len(translated.splitlines()) == 13
    assert (tmp_path / "text").read_text(encoding="utf-8") == "\n" + translated
