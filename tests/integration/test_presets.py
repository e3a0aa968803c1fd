"""Test that the sizes of architectures are fairseq's own, on the command line and in the YAML files for Hydra."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

import hydra
import pytest
from fairseq import options
from fairseq.dataclass import utils
from fairseq.models.transformer import TransformerConfig
from omegaconf import OmegaConf

from fairseq_posenc.core.syntax import parse_options
from fairseq_posenc.models.config import StacksPosEncConfig, check_overrides, encoding_of, nested_config
from fairseq_posenc.models.presets import PRESETS

from .support import PLUGIN, command_line, parse

STOCK = {
    "": "transformer",
    "_tiny": "transformer_tiny",
    "_iwslt_de_en": "transformer_iwslt_de_en",
    "_wmt_en_de": "transformer_wmt_en_de",
    "_wmt_en_de_big": "transformer_vaswani_wmt_en_de_big",
}
SUFFIXES = ["", *(f"_{name}" for name in PRESETS)]


@functools.cache
def parsed(arch: str, *arguments: str) -> Any:
    words = ["data", "--task", "translation", "--optimizer", "adam", "--max-tokens", "1", "--arch", arch, *arguments]
    return parse(words).model


def yaml(suffix: str) -> dict[str, Any]:
    return OmegaConf.to_container(OmegaConf.load(PLUGIN / "config" / "model" / f"posenc_transformer{suffix}.yaml"))


def expected(suffix: str) -> dict[str, Any]:
    name = suffix.removeprefix("_")
    own = {field.name: field.default for field in dataclasses.fields(StacksPosEncConfig) if field.name != "_name"}
    return {**own, **PRESETS.get(name, {})}


def sizes(config: Any) -> dict[str, Any]:
    """Return all options of fairseq's transformer except names and the switch of its own positions."""
    return _plain(OmegaConf.to_container(OmegaConf.structured(config)))


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    skipped = ("no_token_positional_embeddings", "_name")
    plain = {name: value for name, value in values.items() if name not in skipped}
    return {name: _plain(value) if isinstance(value, dict) else value for name, value in plain.items()}


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


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_preset_writes_its_sizes(suffix: str) -> None:
    model = parsed(f"posenc_transformer{suffix}")
    assert {name: model[name] for name in expected(suffix)} == expected(suffix)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_yaml_is_the_preset(suffix: str) -> None:
    assert yaml(suffix) == {"_name": "posenc_transformer", **expected(suffix)}


def test_every_yaml_has_its_preset() -> None:
    stems = {path.stem for path in (PLUGIN / "config" / "model").glob("posenc_transformer*")}
    stems -= {name for name in stems if name.startswith("posenc_transformer_lm")}  # see test_lm
    assert stems == {f"posenc_transformer{suffix}" for suffix in SUFFIXES}


@pytest.mark.parametrize("suffix", STOCK)
def test_the_sizes_are_those_of_fairseq(suffix: str) -> None:
    ours = nested_config(parsed(f"posenc_transformer{suffix}"))
    words = ["data", "--task", "translation", "--optimizer", "adam", "--max-tokens", "1", "--arch", STOCK[suffix]]
    theirs = TransformerConfig.from_namespace(options.parse_args_and_arch(options.get_training_parser(), words))
    assert sizes(ours) == sizes(theirs)


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


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_hydra_composes_the_preset(suffix: str) -> None:
    """The primary config does not overwrite the values of `model=`, and each key can be overridden."""
    with hydra.initialize_config_dir(str(PLUGIN / "config"), version_base="1.1"):
        name, overrides = f"posenc_transformer{suffix}", ["model.pos_enc=shaw", "model.pos_enc_args='clip=3'"]
        plain = hydra.compose("translation", [f"model={name}"])
        changed = hydra.compose("translation", [f"model={name}", *overrides])
    values = {"_name": "posenc_transformer", **expected(suffix), "share_all_embeddings": True}
    assert {key: plain.model[key] for key in values} == values
    chosen = encoding_of(changed.model, "decoder")
    assert (chosen.name, chosen.args) == ("shaw", {"clip": "3"})


def test_only_the_settings_that_hydra_needs_are_shipped() -> None:
    config = OmegaConf.load(Path(PLUGIN) / "config" / "translation.yaml")
    assert config.criterion == {"_name": "label_smoothed_cross_entropy", "label_smoothing": 0.1}
    assert config.dataset.required_batch_size_multiple == 1
