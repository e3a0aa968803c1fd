"""Test n-gram blocking, --diverse-beam-groups and --replace-unk: each fault of fairseq, and its fix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("fairseq")

from fairseq import options, utils
from fairseq.ngram_repeat_block import NGramRepeatBlock
from fairseq.search import DiverseBeamSearch
from torch import Tensor

from .data import words

# -- --no-repeat-ngram-size

HYPOTHESES = torch.tensor([[2, 5, 6, 5, 1, 1, 1], [2, 5, 6, 7, 1, 1, 1], [2, 5, 5, 5, 1, 1, 1]])


def banned(size: int, step: int) -> list[list[int]]:
    scores = NGramRepeatBlock(size, use_extension=False)(HYPOTHESES, torch.zeros(3, 9), 1, 3, step)
    return [(row == -torch.inf).nonzero().flatten().tolist() for row in scores]


def test_repeated_ngrams_are_banned(monkeypatch: pytest.MonkeyPatch) -> None:
    assert banned(2, 3) == [[6], [], [5]]
    assert banned(3, 3) == [[], [], [5]]
    assert banned(2, 0) == [[], [], []]
    monkeypatch.setattr(NGramRepeatBlock, "_no_repeat_ngram", NGramRepeatBlock._no_repeat_ngram.__wrapped__)
    assert banned(2, 3) == [[], [], []]  # the fault: it compares with the padding


# -- --diverse-beam-groups

STEPS = 9


def searched(numbers: list[int], rows: list[int], step_of: Callable[..., Any] | None = None) -> list[Tensor]:
    """Return the beams of some sentences at each step; the first sentence ends after step 1.

    Args:
        numbers: Numbers of the sentences in the data.
        rows: For each sentence, the row of the random scores that it gets.
        step_of: The search's method `step`; None for the method with the fix.
    """
    random = torch.Generator().manual_seed(1)
    search = DiverseBeamSearch(words(), num_groups=2, diversity_strength=0.05)
    taken, left = [], list(range(len(rows)))
    for step in range(STEPS if len(rows) > 1 else 2):
        scores = 2 * torch.rand(3, 4, len(words()), generator=random)[rows][left]
        before = torch.zeros(3, 4, step)[rows][left]
        ids = torch.tensor(numbers)[left]
        taken.append((step_of or DiverseBeamSearch.step)(search, step, scores, before, None, ids)[1])
        left = left[1:] if step == 1 else left
    return taken


def same(one: list[Tensor], other: list[Tensor]) -> bool:
    return all(torch.equal(*pair) for pair in zip(one, other, strict=True))


def test_the_groups_of_a_sentence_do_not_depend_on_its_number() -> None:
    shipped = DiverseBeamSearch.step.__wrapped__
    expected = searched([0, 1, 2], [0, 1, 2], shipped)  # numbers that are places
    with pytest.raises(IndexError):
        searched([7, 5, 9], [0, 1, 2], shipped)  # the fault
    assert not same(searched([2, 0, 1], [0, 1, 2], shipped), expected)  # the fault, in silence
    for numbers in ([0, 1, 2], [7, 5, 9], [2, 0, 1]):
        assert same(searched(numbers, [0, 1, 2]), expected)


# -- --replace-unk

SOURCE, TARGET = "der Zug fährt", "the <unk> <unk>"
PAIRS = [(0, 0), (2, 1), (1, 2)]


def test_the_flag_without_a_file_copies_the_aligned_source_word(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="@@ "):
        utils.load_align_dict.__wrapped__("@@ ")  # the fault
    with pytest.raises(TypeError):
        utils.replace_unk.__wrapped__(TARGET, SOURCE, PAIRS, {}, "<unk>")  # the fault
    assert utils.load_align_dict("@@ ") == {}
    assert utils.load_align_dict(None) is None
    assert utils.replace_unk(TARGET, SOURCE, PAIRS, {}, "<unk>") == "the fährt Zug"
    (tmp_path / "words").write_text("Zug train\n", "utf-8")
    dictionary = utils.load_align_dict(str(tmp_path / "words"))
    assert utils.replace_unk(TARGET, SOURCE, PAIRS, dictionary, "<unk>") == "the fährt train"
    assert utils.replace_unk("a b <unk>", SOURCE, PAIRS[:2], {}, "<unk>") == "a b <eos>"  # aligned to no word


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--replace-unk", "needs to know which source word a word translates. Add --print-alignment hard."),
        ("--replace-unk --print-alignment --remove-bpe", "Leave out one of the two flags."),
    ],
)
def test_the_flag_is_refused_where_it_cannot_work(
    flags: str, message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["fairseq-generate"])
    options.parse_args_and_arch(options.get_generation_parser(), "data --replace-unk --print-alignment".split())
    with pytest.raises(SystemExit, match="2"):
        options.parse_args_and_arch(options.get_generation_parser(), ["data", *flags.split()])
    assert message in capsys.readouterr().err
