"""Test that the commands of the README train a model, translate and score, on a small version of the demo's data."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
import support_warm

from .support import ROOT

pytest.importorskip("sentencepiece")
pytest.importorskip("sacrebleu")

README = (ROOT / "README.md").read_text(encoding="utf-8")
TEST_SENTENCES = 12
#: What `make demo` writes before it trains, but with fewer sentences and subwords.
DATA = f"""
out=results/demo
python -m recipes.lib.invented.sentences --output $out/raw --seed 1 --sizes 200,10,{TEST_SENTENCES}
python -m recipes.lib.translation.subwords --raw $out/raw --output $out/subwords --languages en inv \
    --tokenizer sentencepiece-bpe --vocabulary 300
fairseq-preprocess --source-lang en --target-lang inv --joined-dictionary --workers 1 --trainpref $out/subwords/train \
    --validpref $out/subwords/valid --testpref $out/subwords/test --destdir $out/data-bin
"""


def test_the_commands_train_translate_and_score(tmp_path: Path) -> None:
    section = README.partition("## Train and translate\n")[2].partition("\n## ")[0]
    (commands,) = re.findall(r"```bash\n(.*?)```", section, re.DOTALL)
    assert commands.count("--max-update 300 ") == 1
    (tmp_path / "fairseq_posenc").symlink_to(ROOT / "fairseq_posenc")
    ran = support_warm.shell(
        DATA + commands.replace("--max-update 300 ", "--max-update 2 "),
        tmp_path / "programs",
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    scores = json.loads(ran.stdout[ran.stdout.rindex("[\n") :])
    assert [score["name"] for score in scores] == ["BLEU", "chrF2"]
    translations = (tmp_path / "checkpoints" / "shaw" / "test.inv").read_text(encoding="utf-8")
    assert len(translations.splitlines()) == TEST_SENTENCES
    assert "▁" not in translations
