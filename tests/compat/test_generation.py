"""Test n-gram blocking, --diverse-beam-groups, --replace-unk and a note about --max-len-a: faults, then fixes."""

from __future__ import annotations

import logging
from argparse import Namespace
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

from fairseq_posenc.compat import generation, patching

from .data import words

# -- --no-repeat-ngram-size

HYPOTHESES = torch.tensor([[2, 5, 6, 5, 1, 1, 1], [2, 5, 6, 7, 1, 1, 1], [2, 5, 5, 5, 1, 1, 1]])


def banned(forward: Callable[..., torch.Tensor], size: int, step: int) -> list[list[int]]:
    block = NGramRepeatBlock(size, use_extension=False)
    scores = forward(block, HYPOTHESES, torch.zeros(3, 9), 1, 3, step)
    return [(row == -torch.inf).nonzero().flatten().tolist() for row in scores]


def test_repeated_ngrams_are_banned() -> None:
    shipped = NGramRepeatBlock.forward._posenc_original
    assert banned(shipped, 2, 3) == [[], [], []]  # the fault: it compares with the padding
    assert banned(NGramRepeatBlock.forward, 2, 3) == [[6], [], [5]]
    assert banned(NGramRepeatBlock.forward, 3, 3) == [[], [], [5]]
    assert banned(NGramRepeatBlock.forward, 2, 0) == [[], [], []]
    compiled = torch.jit.script(NGramRepeatBlock(2, use_extension=False))
    scores = compiled(HYPOTHESES, torch.zeros(3, 9), 1, 3, 3)
    assert (scores == -torch.inf).nonzero().tolist() == [[0, 6], [2, 5]]


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
    shipped = DiverseBeamSearch._posenc_original
    expected = searched([0, 1, 2], [0, 1, 2], shipped)  # numbers that are places
    with pytest.raises(IndexError):
        searched([7, 5, 9], [0, 1, 2], shipped)  # the fault
    assert not same(searched([2, 0, 1], [0, 1, 2], shipped), expected)  # the fault, in silence
    for numbers in ([0, 1, 2], [7, 5, 9], [2, 0, 1]):
        assert same(searched(numbers, [0, 1, 2]), expected)


def test_a_sentence_has_the_same_groups_alone_and_in_a_batch() -> None:
    together, alone = searched([7, 5, 9], [0, 1, 2]), searched([9], [2])
    assert all(torch.equal(many[-1:], one) for many, one in zip(together[:2], alone, strict=True))


def test_diverse_beams_compile_to_torchscript() -> None:
    random = torch.Generator().manual_seed(0)
    compiled, plain = (DiverseBeamSearch(words(), num_groups=2, diversity_strength=0.05) for _ in range(2))
    compiled = torch.jit.script(compiled)
    for step in range(2):
        scores, before = torch.rand(2, 4, len(words()), generator=random), torch.rand(2, 4, step, generator=random)
        results = [search.step(step, scores, before, None, torch.tensor([8, 3])) for search in (compiled, plain)]
        assert same(*[list(result) for result in results])


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
        (["--replace-unk"], "needs to know which source word a word translates. Add --print-alignment hard."),
        (["--replace-unk", "--print-alignment", "soft"], "Add --print-alignment hard."),
        (["--replace-unk", "--print-alignment", "--remove-bpe"], "Leave out one of the two flags."),
        (["--replace-unk", "--print-alignment"], None),
    ],
)
def test_the_flag_is_refused_where_it_cannot_work(
    flags: list[str], message: str | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["fairseq-generate"])

    def parse() -> Any:
        return options.parse_args_and_arch(options.get_generation_parser(), ["data", *flags])

    if message is None:
        assert parse()
        return
    with pytest.raises(SystemExit, match="2"):
        parse()
    assert message in capsys.readouterr().err


# -- --max-len-a


@pytest.mark.parametrize(
    ("limits", "lengths", "noted"),
    [
        ({"max_len_a": 1.0, "max_len_b": 1}, [5, 4], False),  # the second may have 3 tokens and </s>
        ({"max_len_a": 1.0, "max_len_b": 1}, [5, 5], True),
        ({"max_len_a": 0.0, "max_len_b": 9}, [10, 10], False),
        ({"match_source_len": True}, [5, 3], False),  # sources of 4 and 2 tokens
        ({"match_source_len": True}, [5, 5], True),
    ],
)
def test_a_translation_longer_than_its_own_source_allows_is_noted(
    limits: dict[str, Any], lengths: list[int], noted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    generator = Namespace(**{"max_len_a": 0.0, "max_len_b": 0, "match_source_len": False, "pad": 1, **limits})
    sample = {
        "net_input": {"src_tokens": torch.tensor([[5, 5, 5, 2], [1, 1, 5, 2]]), "src_lengths": torch.tensor([4, 2])}
    }
    hypotheses = [[{"tokens": torch.zeros(length)}] for length in lengths]
    patching._said.clear()
    with caplog.at_level(logging.INFO, "fairseq_posenc"):
        assert generation._with_note(lambda *_: hypotheses, generator, [], sample) is hypotheses
    assert [("--batch-size 1 limits each sentence" in message) for message in caplog.messages] == [True] * noted
