"""Test how the translation recipe decodes sentences beyond a model's positions: it lists those that a table refuses."""

from __future__ import annotations

from pathlib import Path

import fairseq_cli.generate
from fairseq import options

from recipes.lib.translation import score

from . import support
from .support import PLUGIN, SIZES, TINY

POSITIONS = 7
SHORT = ["--max-source-positions", str(POSITIONS), "--max-target-positions", str(POSITIONS), "--max-update", "1"]


#: What the recipe's preset `lengths` gives fairseq-generate, except for data, subwords and model.
FLAGS = "--task posenc_translation --beam 10 --lenpen 0.6 --lenpen-form gnmt --max-tokens 4096 --max-len-a 1"
FLAGS += " --max-len-b 50 --skip-invalid-size-inputs-valid-test"


def generated(data: Path, path: Path, *languages: str) -> str:
    words = [data, "--user-dir", PLUGIN, *languages, "--path", path, "--cpu", "--required-batch-size-multiple", "1"]
    cfg = support.parse([*words, *FLAGS.split()], options.get_generation_parser, arch="wav2vec2")
    return support.printed(fairseq_cli.generate.main, cfg)[0]


def lengths(data: Path) -> list[int]:
    """Return the numbers of words of the test sentences, which are the same on both sides."""
    _, task = support.built(data)
    task.load_dataset("test")
    return [int(size) - 1 for size in task.dataset("test").src_sizes]


def test_a_table_refuses_what_it_has_no_rows_for(data: Path, tmp_path: Path) -> None:
    """The other direction reads the same data."""
    longer = {number for number, words in enumerate(lengths(data)) if words + 1 > POSITIONS}
    assert 0 < len(longer) < SIZES["test"]
    everything = set(range(SIZES["test"]))
    for name, languages, expected in (("learned", "en de", everything - longer), ("rope", "de en", everything)):
        source, target = languages.split()
        support.train(data, "--pos-enc", name, *SHORT, "--save-dir", tmp_path / name, model=TINY)
        text = generated(data, tmp_path / name / "checkpoint_last.pt", "-s", source, "-t", target)
        (tmp_path / "out").write_text(text)
        assert set(score.hypotheses(tmp_path / "out")) == expected
