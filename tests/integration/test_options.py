"""Test --pos-enc and the related flags, and the errors about options that are refused."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from fairseq_posenc.encodings import get, names
from fairseq_posenc.models import config

from . import support


def encodings(data: Path, *arguments: str) -> tuple[str, str]:
    model, _ = support.built(data, *arguments)
    return str(model.encoder.pos), str(model.decoder.pos)


def test_both_stacks_get_pos_enc(data: Path) -> None:
    encoder, decoder = encodings(data, "--pos-enc", "shaw", "--pos-enc-args", "clip=5")
    assert encoder == decoder
    assert encoder.startswith("shaw(")
    assert "clip=5" in encoder


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_a_stack_may_have_its_own(data: Path, side: str) -> None:
    own = [f"--pos-enc-{side}", "shaw", f"--pos-enc-{side}-args", "clip=3"]
    chosen = dict(zip(("encoder", "decoder"), encodings(data, "--pos-enc", "t5", *own), strict=True))
    assert chosen.pop(side).startswith("shaw(clip=3")
    assert next(iter(chosen.values())).startswith("t5(")


def test_a_stack_may_have_its_own_arguments_only(data: Path) -> None:
    encoder, decoder = encodings(
        data, "--pos-enc", "shaw", "--pos-enc-args", "clip=3", "--pos-enc-decoder-args", "clip=4"
    )
    assert "clip=3" in encoder
    assert "clip=4" in decoder


def test_the_arguments_of_pos_enc_do_not_reach_another_encoding(data: Path) -> None:
    encoder, decoder = encodings(data, "--pos-enc", "shaw", "--pos-enc-args", "clip=3", "--pos-enc-decoder", "rope")
    assert "clip=3" in encoder
    assert decoder.startswith("rope(")


def test_arguments_that_nothing_reads_are_refused(data: Path) -> None:
    own = ["--pos-enc-encoder", "rope", "--pos-enc-decoder-args", "clip=2"]
    with pytest.raises(ValueError, match="--pos-enc-args has no effect"):
        encodings(data, "--pos-enc", "shaw", "--pos-enc-args", "clip=3", *own)


@pytest.mark.parametrize("flag", ["--pos-enc", "--pos-enc-encoder", "--pos-enc-decoder"])
def test_an_unknown_encoding_is_refused_with_the_known_ones(data: Path, flag: str) -> None:
    with pytest.raises(ValueError, match="unknown position encoding 'shawl'") as error:
        encodings(data, flag, "shawl")
    assert all(name in str(error.value) for name in names())


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("clop=3", ["clop", "clip", "share", "values"]),
        ("clip=x", ["clip=x", "whole number"]),
        ("share=nobody", ["share", "head-wise", "layer-wise", "nobody"]),
        ("clip", ["NAME=VALUE", "'clip'"]),
        ("clip=3,clip=4", ["clip", "twice"]),
    ],
)
def test_a_wrong_option_is_refused_with_the_right_ones(data: Path, option: str, words: list[str]) -> None:
    with pytest.raises(ValueError, match=r"shaw|--pos-enc-args") as error:
        encodings(data, "--pos-enc", "shaw", "--pos-enc-args", option)
    assert all(word in str(error.value) for word in words), str(error.value)


@pytest.mark.parametrize("flag", ["--pos-enc", "--pos-enc-encoder"])
@pytest.mark.parametrize("name", [name for name in names() if get(name).needs_segments])
def test_segments_are_refused_when_the_model_is_built(data: Path, flag: str, name: str) -> None:
    """They are refused before the first forward pass, because translation has no sentence pairs."""
    with pytest.raises(ValueError, match=f"{name} needs the segments.*remove {name} from {flag}$"):
        encodings(data, flag, f"diet-rel+{name}")


def test_what_cannot_be_combined_is_refused(data: Path) -> None:
    with pytest.raises(ValueError, match="m2 replaces the product of query and key, which rope needs"):
        encodings(data, "--pos-enc", "rope+m2")


REFUSED = {
    "encoder_learned_pos": [],
    "decoder_learned_pos": [],
    "no_token_positional_embeddings": [],
    "cross_self_attention": [],
    "encoder_xformers_att_config": ["{}"],
    "decoder_xformers_att_config": ["{}"],
    "encoder_layers_to_keep": ["0"],
    "decoder_layers_to_keep": ["0"],
    "base_layers": ["1"],
    "adaptive_input": [],
    "char_inputs": [],
    "export": [],
}


def test_every_refused_flag_is_tested() -> None:
    flags = {field.name for field in dataclasses.fields(config.TransformerPosEncConfig)}
    assert REFUSED.keys() == config.REFUSED_IN_TRANSLATION.keys() & flags


@pytest.mark.parametrize("name", REFUSED)
def test_what_these_models_do_not_have_is_refused_by_its_flag(data: Path, name: str) -> None:
    flag = f"--{name.replace('_', '-')}"
    with pytest.raises(ValueError, match=f"{flag} is not supported by posenc architectures") as error:
        support.built(data, flag, *REFUSED[name])
    assert config.REFUSED_IN_TRANSLATION[name] in str(error.value)


def test_full_context_alignment_is_refused(data: Path) -> None:
    model, task = support.built(data)
    inputs = support.batches(task)[0]["net_input"]
    encoded = model.encoder(inputs["src_tokens"], inputs["src_lengths"])
    with pytest.raises(ValueError, match="full_context_alignment is not supported"):
        model.decoder(inputs["prev_output_tokens"], encoder_out=encoded, full_context_alignment=True)


@pytest.mark.parametrize(
    ("flag", "short"), [("--max-source-positions", "encoder"), ("--max-target-positions", "decoder")]
)
def test_beyond_a_learned_table_the_flag_is_named(data: Path, flag: str, short: str) -> None:
    model, task = support.built(data, "--pos-enc", "learned", flag, "4")
    assert dict(zip(("encoder", "decoder"), model.max_positions(), strict=True))[short] == 4
    with pytest.raises(ValueError, match=f"defined up to 4 positions, but there are .*: raise {flag}"):
        model(**support.batches(task)[0]["net_input"])


def test_a_table_that_extends_has_no_limit(data: Path) -> None:
    arguments = ["--pos-enc-args", "extend=repeat", "--max-source-positions", "4", "--max-target-positions", "4"]
    model, task = support.built(data, "--pos-enc", "learned", *arguments)
    model(**support.batches(task)[0]["net_input"])
    assert min(model.max_positions()) > 4


@pytest.mark.parametrize("field", dataclasses.fields(config.PosEncConfig), ids=lambda field: field.name)
def test_a_checkpoint_may_be_older_than_an_option(data: Path, field: dataclasses.Field[Any]) -> None:
    cfg = support.parse(support.command_line(data))
    task = support.built(data)[1]
    older = Namespace(**{name: value for name, value in cfg.model.items() if name != field.name})
    older._name = "posenc_transformer_tiny"
    assert str(task.build_model(older).encoder.pos).startswith("sinusoidal(")


@pytest.mark.parametrize("path", [None, "explicit", "compiled"])
def test_the_path_reaches_every_self_attention(data: Path, path: str | None) -> None:
    arguments = [] if path is None else ["--pos-enc-path", path]
    model, _ = support.built(data, "--pos-enc", "t5", *arguments)
    paths = {layer.self_attn.path for layer in (*model.encoder.layers, *model.decoder.layers)}
    assert paths == {path or "auto"}


def test_an_unknown_path_is_refused(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        support.built(data, "--pos-enc-path", "fast")
    assert "--pos-enc-path" in capsys.readouterr().err
