"""Test the options that all data scripts share."""

from __future__ import annotations

import argparse
from pathlib import Path

import binarise_parallel
import command
import prepare_corpus
import pytest


def test_a_folder_of_data_has_no_colon() -> None:
    assert command.data_folder("data/12-30") == Path("data/12-30")
    with pytest.raises(argparse.ArgumentTypeError, match="data/12:30: the path contains ':', at which fairseq splits"):
        command.data_folder("data/12:30")


@pytest.mark.parametrize(
    ("main", "words"),
    [
        (binarise_parallel.main, ["--text", "text"]),
        (prepare_corpus.main, ["--train", "a", "--valid", "b", "--tokenizer", "wordpiece"]),
    ],
)
def test_scripts_refuse_it_before_they_work(main, words, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([*words, "--output", "12:30"])
    assert "--output: 12:30: the path contains ':'" in capsys.readouterr().err
