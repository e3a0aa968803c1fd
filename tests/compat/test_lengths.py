"""Test that sentences beyond the length limit are refused in a line that names lengths, limits and flags."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import support_warm

pytest.importorskip("fairseq")

from fairseq.tasks import FairseqTask

from fairseq_posenc.compat import lengths, refusals

from . import ROOT
from .data import pair_dataset

SKIP = "--skip-invalid-size-inputs-valid-test"


class Task(FairseqTask):
    """A task that allows `own` tokens."""

    def __init__(self, own: Any, **settings: int) -> None:
        super().__init__(argparse.Namespace(**settings))
        self.own = own

    def max_positions(self) -> Any:
        return self.own


def batches(task: FairseqTask, limit: Any, **more: Any) -> Any:
    return task.get_batch_iterator(pair_dataset(20), max_positions=limit, max_sentences=4, **more)


def test_a_long_sentence_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task((8, 10))
    dataset = pair_dataset(20)
    long = int((np.array(dataset.src_sizes) > 8).sum())
    assert 0 < long < 20
    with monkeypatch.context() as patch:
        patch.setattr(FairseqTask, "filter_indices_by_size", FairseqTask.filter_indices_by_size.__wrapped__)
        with pytest.raises(Exception, match="is invalid") as fault:
            batches(task, (8, 10))
    assert not refusals.is_refusal(fault.value)  # the fault: a traceback, and a message without a flag to raise
    with pytest.raises(ValueError, match=rf"Raise --max-source-positions.*{SKIP}.*: {long} of 20") as refusal:
        batches(task, (8, 10))
    assert refusals.is_refusal(refusal.value)


def test_sentences_are_left_out_on_request() -> None:
    kept = batches(Task((8, 8)), (8, 8), ignore_invalid_inputs=True).next_epoch_itr(shuffle=False)
    assert 0 < sum(batch["nsentences"] for batch in kept) < 20
    kept = batches(Task((12, 12)), (12, 12)).next_epoch_itr(shuffle=False)
    assert sum(batch["nsentences"] for batch in kept) == 20


@pytest.mark.parametrize(
    ("task", "size", "limit", "words"),
    [
        (Task((9, 9)), (12, 10), (9, 9), "12 source tokens (limit: 9) and 10 target ... Raise --max-source"),
        (Task((99, 99)), (4, 10), (9, 9), "has 10 target tokens (limit: 9), ... Train a model with a larger --max"),
        (Task((9, None)), (12, 99), (9, None), "has 12 source tokens (limit: 9), ... Raise --max-source-positions, or"),
        (Task(9, tokens_per_sample=9), 12, 9, "has 12 tokens (limit: 9), ... Raise --tokens-per-sample, or"),
        (Task(9, max_positions=9), np.int64(12), 9, "has 12 tokens (limit: 9), ... Raise --max-positions, or"),
        (Task(9), (12, 9), 9, "has 12 source tokens (limit: 9), incl"),
    ],
)
def test_the_line_names_what_is_too_long(task: FairseqTask, size: Any, limit: Any, words: str) -> None:
    line = lengths.refusal(task, 3, size, limit, "1 of 7")
    assert line.startswith("sentence 3, counted from 0, has ")
    assert all(part in line for part in words.split(" ... ")), line


def test_generate_ends_in_one_line_too(tmp_path: Path) -> None:
    """fairseq-generate does not call `call_main`. A broken variant without the fix prints a traceback."""
    code = """
        import sys
        import fairseq_posenc
        import fairseq_cli.generate as generate
        from fairseq_cli.generate import cli_main
        from fairseq_posenc.compat import command_line
        from fairseq_posenc.encodings import StackShape, build
        if sys.argv.pop() == "fault":
            command_line._refuse_in_one_line = lambda: None
        generate.main = lambda cfg: build("linformer", None, StackShape(1, 2, 8, 8, causal=True))
        sys.argv = ["fairseq-generate", "data-bin"]
        cli_main()
    """
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(code))
    faulty, ended = (
        support_warm.run([sys.executable, program, way], env={**os.environ, "PYTHONPATH": str(ROOT)})
        for way in ("fault", "mended")
    )
    assert "Traceback" in faulty.stderr
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith(
        "fairseq-generate: error: pos_enc (--pos-enc) linformer does not work"
    )
