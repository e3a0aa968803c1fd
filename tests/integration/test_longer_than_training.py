"""Test how the translation recipe decodes sentences beyond a model's positions: it lists those that a table refuses."""

from __future__ import annotations

from pathlib import Path

import fairseq_cli.generate
import pytest
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


@pytest.fixture(scope="module")
def texts(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """Return by encoding what fairseq-generate printed, and the checkpoint."""
    outputs = {}
    for name in ("learned", "rope"):
        folder = tmp_path_factory.mktemp(name)
        support.train(data, "--pos-enc", name, *SHORT, "--save-dir", folder, model=TINY)
        (folder / "out").write_text(generated(data, folder / "checkpoint_last.pt", "-s", "en", "-t", "de"))
        outputs[name] = (folder / "out", folder / "checkpoint_last.pt")
    return outputs


def lengths(data: Path) -> list[int]:
    """Return the numbers of words of the test sentences, which are the same on both sides."""
    _, task = support.built(data)
    task.load_dataset("test")
    return [int(size) - 1 for size in task.dataset("test").src_sizes]


def test_a_table_refuses_what_it_has_no_rows_for(data: Path, texts: dict[str, tuple[Path, Path]]) -> None:
    longer = {number for number, words in enumerate(lengths(data)) if words + 1 > POSITIONS}
    assert 0 < len(longer) < SIZES["test"]
    assert set(score.hypotheses(texts["learned"][0])) == set(range(SIZES["test"])) - longer
    assert sorted(score.hypotheses(texts["rope"][0])) == list(range(SIZES["test"]))


def test_the_other_direction_reads_the_same_data(
    data: Path, texts: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    """The quality of the translations does not matter here."""
    (tmp_path / "out").write_text(generated(data, texts["rope"][1], "-s", "de", "-t", "en"))
    assert len(score.hypotheses(tmp_path / "out")) == SIZES["test"]
