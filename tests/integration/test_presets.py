"""Test which sizes and options of encodings a translation model takes from its architecture and from the user."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import hydra
import pytest
from fairseq.dataclass import utils
from omegaconf import OmegaConf

from fairseq_posenc.core.syntax import parse_options
from fairseq_posenc.models.config import check_overrides, encoding_of, nested_config

from .support import PLUGIN, command_line, parse


@functools.cache
def parsed(arch: str, *arguments: str) -> Any:
    words = ["data", "--task", "translation", "--optimizer", "adam", "--max-tokens", "1", "--arch", arch, *arguments]
    return parse(words).model


def test_the_tests_parse_a_command_line_as_fairseq_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests cache what Hydra loads (`support.composed`)."""
    words = ["--pos-enc", "shaw", "--pos-enc-args", "clip=3,values=false", "--max-epoch", 2, "--save-dir", "a b"]
    words += ["--eval-bleu", "--eval-bleu-args", '{"beam": 2}', "--stop-time-hours", 1e-9, "--curriculum", 9]
    ours = parse(command_line(Path("data"), *words))
    monkeypatch.setattr(utils, "compose", hydra.compose)
    theirs = parse(command_line(Path("data"), *words))
    assert ours == theirs
    assert {type(ours[group]) for group in ours} == {type(theirs[group]) for group in theirs}
    assert ours.common.seed == 3


def test_the_decoder_follows_the_encoder_unless_told_otherwise() -> None:
    config = nested_config(parsed("posenc_transformer", "--encoder-embed-dim", "128", "--encoder-ffn-embed-dim", "64"))
    assert (config.decoder.embed_dim, config.decoder.input_dim, config.decoder.output_dim) == (128, 128, 128)
    assert config.decoder.ffn_embed_dim == 64
    config = nested_config(parsed("posenc_transformer_tiny", "--encoder-embed-dim", "128", "--decoder-embed-dim", "32"))
    assert (config.encoder.embed_dim, config.decoder.embed_dim, config.decoder.input_dim) == (128, 32, 32)


def test_the_user_beats_the_preset() -> None:
    model = parsed("posenc_transformer_wmt_en_de_big", "--dropout", "0.1", "--pos-enc-args", "offset=2")
    assert (model.dropout, model.pos_enc_args, model.encoder_embed_dim) == (0.1, "offset=2", 1024)


@pytest.mark.parametrize(
    ("words", "encoder", "decoder"),
    [
        ("", "sinusoidal freq=t2t", "sinusoidal freq=t2t"),
        ("--pos-enc shaw", "shaw", "shaw"),
        ("--pos-enc sinusoidal+shaw", "sinusoidal+shaw freq=t2t", "sinusoidal+shaw freq=t2t"),
        ("--pos-enc-args offset=2", "sinusoidal offset=2,freq=t2t", "sinusoidal offset=2,freq=t2t"),
        ("--pos-enc-encoder-args offset=2", "sinusoidal offset=2,freq=t2t", "sinusoidal freq=t2t"),
        ("--pos-enc-encoder shaw --pos-enc-decoder-args freq=paper", "shaw", "sinusoidal freq=paper"),
        ("--pos-enc-encoder sinusoidal --pos-enc rope", "sinusoidal freq=t2t", "rope"),
    ],
)
def test_the_t2t_frequencies_come_wherever_a_wmt_preset_meets_sinusoids(words: str, encoder: str, decoder: str) -> None:
    model = parsed("posenc_transformer_wmt_en_de", *words.split())
    check_overrides(model)
    for side, text in (("encoder", encoder), ("decoder", decoder)):
        name, _, args = text.partition(" ")
        chosen = encoding_of(model, side)
        assert chosen.name == name
        assert {key.rpartition(".")[2]: value for key, value in chosen.args.items()} == parse_options(args)


def test_other_presets_have_the_formulas_own() -> None:
    assert encoding_of(parsed("posenc_transformer_iwslt_de_en"), "encoder").args == {}


@pytest.mark.parametrize(
    "defaults", ["sinusoid.freq=t2t", "sinusoidal.frequency=t2t", "sinusoidal.freq=fast", "freq=t2t"]
)
def test_defaults_of_nothing_are_refused(defaults: str) -> None:
    with pytest.raises(ValueError, match=r"sinusoid|frequency|fast|unknown"):
        encoding_of(parsed("posenc_transformer", "--pos-enc", "rope", "--pos-enc-defaults", defaults), "encoder")


def test_only_the_settings_that_hydra_needs_are_shipped() -> None:
    config = OmegaConf.load(Path(PLUGIN) / "config" / "translation.yaml")
    assert config.criterion == {"_name": "label_smoothed_cross_entropy", "label_smoothing": 0.1}
    assert config.dataset.required_batch_size_multiple == 1
