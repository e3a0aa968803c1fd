"""Test options in brackets, --pos-enc 'm4[clip=3]', in training: all models take them, and resume with any spelling."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest
from fairseq import tasks, utils

from . import lm, masked_lm, support


def built(words: list[str]) -> tuple[Any, Any]:
    """Return the options of a model after it was built, and the model."""
    cfg = support.parse(words)
    utils.import_user_module(cfg.common)
    model = tasks.setup_task(cfg.task).build_model(cfg.model)
    return cfg.model, model


def encodings(model: Any) -> list[str]:
    return [str(module) for name, module in model.named_modules() if name.endswith(".pos")]


@pytest.mark.parametrize("kind", ["translation", "masked_lm", "lm"])
def test_the_options_of_a_model_store_one_spelling(kind: str, data: Path, tmp_path: Path) -> None:
    """fairseq saves these options in each checkpoint."""
    module: Any = {"translation": support, "masked_lm": masked_lm, "lm": lm}[kind]
    folder = data if kind == "translation" else module.write_corpus(tmp_path / "data-bin")
    (stored, model), *others = [built(module.command_line(folder, *flags)) for flags in SPELLINGS]
    assert (stored.pos_enc, stored.pos_enc_args) == ("m4", "clip=3,share=none")
    assert all("clip=3,share=none" in text for text in encodings(model))
    for other, same in others:
        assert (other.pos_enc, other.pos_enc_args) == (stored.pos_enc, stored.pos_enc_args)
        assert encodings(same) == encodings(model)


SPELLINGS = (
    ["--pos-enc", "m4[clip=3,share=none]"],
    ["--pos-enc", "m4[clip=3]", "--pos-enc-args", "share=none"],
    ["--pos-enc", "m4", "--pos-enc-args", "clip=3,share=none"],
)

SIDES = [
    (["--pos-enc-encoder", "m4[clip=3]", "--pos-enc", "shaw[clip=2]+t5"], "m4(clip=3", "shaw(clip=2"),
    (["--pos-enc", "m4[clip=3]", "--pos-enc-encoder-args", "clip=2"], "m4(clip=2", "m4(clip=3"),
    (["--pos-enc", "m4[clip=3]", "--pos-enc-decoder", "m4"], "m4(clip=3", "m4(clip=None"),
    (["--pos-enc-decoder", "m4[clip=3]", "--pos-enc-decoder-args", "share=all"], "sinusoidal", "m4(clip=3,share=all"),
]


@pytest.mark.parametrize(("flags", "encoder", "decoder"), SIDES)
def test_each_stack_may_have_options_in_brackets(data: Path, flags: list[str], encoder: str, decoder: str) -> None:
    stored, model = built(support.command_line(data, *flags))
    assert str(model.encoder.pos).startswith(encoder), str(model.encoder.pos)
    assert str(model.decoder.pos).startswith(decoder), str(model.decoder.pos)
    again = tasks.setup_task(support.parse(support.command_line(data)).task).build_model(stored)
    assert encodings(again) == encodings(model)
    assert not any("[" in str(getattr(stored, f"pos_enc{side}")) for side in ("", "_encoder", "_decoder"))


REFUSED = [
    (["--pos-enc", "m4[clip=3]", "--pos-enc-args", "clip=3"], "--pos-enc and --pos-enc-args both set the option clip"),
    (
        ["--pos-enc-encoder", "m4[clip=3]", "--pos-enc-encoder-args", "clip=2"],
        "--pos-enc-encoder and --pos-enc-encoder-args both set the option clip",
    ),
    (["--pos-enc-decoder", "m4[clpi=3]"], "--pos-enc-decoder: there is no option clpi; did you mean clip?"),
    (["--pos-enc", "m4[clip=-3]"], "--pos-enc: m4: clip=-3 must be"),
    (["--pos-enc", "m4[clip=3"], "--pos-enc: 'm4[clip=3' is not an encoding"),
    (["--pos-enc", "m4[clip=3]", "--pos-enc-encoder", "t5", "--pos-enc-decoder", "t5"], "in --pos-enc has no effect"),
]


@pytest.mark.parametrize(("flags", "message"), REFUSED)
def test_an_error_names_the_flag_with_the_brackets(data: Path, flags: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        built(support.command_line(data, *flags))


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (["--pos-enc", "shaw[clip=3]+t5"], ["--pos-enc", "shaw+t5", "--pos-enc-args", "shaw.clip=3"]),
        (["--pos-enc", "shaw+t5", "--pos-enc-args", "shaw.clip=3"], ["--pos-enc", "shaw+t5[clip=3]"]),
    ],
)
def test_training_resumes_with_any_spelling(
    first: list[str], then: list[str], data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    save = ["--save-dir", tmp_path, "--no-epoch-checkpoints"]
    support.train(data, *save, "--max-update", 1, *first)
    with caplog.at_level(logging.WARNING):
        resumed = support.train(data, *save, "--max-update", 2, *then)
    assert len(resumed.losses) == 1
    assert "other settings" not in caplog.text
    support.train(data, *save, "--max-update", 3, "--pos-enc", "shaw+t5[clip=3,t5.max_distance=64]")
    assert "trained with other settings: --pos-enc-args is shaw.clip=3 in the checkpoint" in caplog.text
