"""Test all fixes together."""

from __future__ import annotations

import logging
import sys
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fairseq")

from fairseq import options, utils
from fairseq.data import data_utils, iterators
from fairseq.data import language_pair_dataset as pairs
from fairseq.data import token_block_dataset as blocks
from fairseq.distributed import utils as distributed
from fairseq.ngram_repeat_block import NGramRepeatBlock

from fairseq_posenc import compat
from fairseq_posenc.compat import patching

from . import run


def test_applying_twice_changes_nothing() -> None:
    def mended() -> list[Any]:
        return [
            data_utils.batch_by_size,
            data_utils.np,
            blocks.np,
            pairs.np,
            NGramRepeatBlock.forward,
            iterators.BackgroundConsumer.__init__,
            iterators.BackgroundConsumer.run,
            iterators.BufferedIterator._create_consumer,
            distributed.torch,
            distributed._broadcast_object_slow,
            options.parse_args_and_arch,
            utils.import_user_module,
        ]

    before = mended()
    compat.apply()
    assert mended() == before  # functions and modules are equal to themselves only


def test_numpy_and_torch_stay_untouched() -> None:
    assert not isinstance(sys.modules["numpy"], patching.Overlay)
    assert not isinstance(sys.modules["torch"], patching.Overlay)
    assert blocks.np.arange is np.arange


def test_a_fix_is_logged_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patching, "_said", set())
    with caplog.at_level(logging.INFO, logger="fairseq_posenc"):
        data_utils.batch_by_size(np.arange(16), lambda i: 1, max_sentences=8, required_batch_size_multiple=8)
        assert not caplog.records
        for _ in range(2):
            data_utils.batch_by_size(np.arange(13), lambda i: 1, max_sentences=8, required_batch_size_multiple=8)
    assert [r.name for r in caplog.records] == ["fairseq_posenc.compat.batching"]
    assert "5 sentences" in caplog.text
    assert "--required-batch-size-multiple 8" in caplog.text


def test_compat_imports_without_fairseq() -> None:
    done = run(
        "import sys; sys.modules['fairseq'] = None; import fairseq_posenc.compat, fairseq_posenc.commands.average"
    )
    assert done.returncode == 0, done.stderr
