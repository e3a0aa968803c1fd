"""Test that every architecture is the same on the command line and in Hydra, and that its sizes are fairseq's."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_DATACLASS_REGISTRY
from fairseq.models.transformer import TransformerConfig
from omegaconf import OmegaConf

from fairseq_posenc.models.config import nested_config

from .support import PLUGIN, parse

FOLDER = PLUGIN / "config" / "model"
OURS = sorted(path.stem for path in FOLDER.glob("*.yaml"))
#: Architectures of fairseq whose sizes ours have.
STOCK = {
    "posenc_transformer": "transformer",
    "posenc_transformer_tiny": "transformer_tiny",
    "posenc_transformer_iwslt_de_en": "transformer_iwslt_de_en",
    "posenc_transformer_wmt_en_de": "transformer_wmt_en_de",
    "posenc_transformer_wmt_en_de_big": "transformer_vaswani_wmt_en_de_big",
    "posenc_roberta": "roberta",
    "posenc_roberta_large": "roberta_large",
}
#: Names, fairseq's own positions, and the length, which our masked language models take from the task.
OTHER = ("arch", "_name", "no_token_positional_embeddings", "max_positions")


@functools.cache
def model_of(arch: str) -> Any:
    """Return the options of the model for `--arch`."""
    task = "language_modeling" if "_lm" in arch else "translation"
    return parse(f"data --task {task} --optimizer adam --max-tokens 1 --arch {arch}".split()).model


def sizes(arch: str) -> dict[str, Any]:
    """Return the options of the model as it is built: in translation models, the decoder follows the encoder."""
    model = model_of(arch)
    if not hasattr(model, "decoder_layers"):
        return dict(model) if OmegaConf.is_config(model) else vars(model)
    nested = nested_config(model) if arch in STOCK else TransformerConfig.from_namespace(model)
    return flat(OmegaConf.to_container(OmegaConf.structured(nested)))


def flat(options: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested options by names such as decoder_layers."""
    return {
        name: value
        for key, group in options.items()
        for name, value in (flat(group, f"{key}_") if isinstance(group, dict) else {prefix + key: group}).items()
    }


def test_every_architecture_has_a_yaml() -> None:
    """One has none, because its sizes come from a checkpoint."""
    ours = {arch for arch in ARCH_MODEL_NAME_REGISTRY if arch.startswith("posenc_")}
    assert ours - {"posenc_roberta_pretrained"} == set(OURS)


@pytest.mark.parametrize("arch", OURS)
def test_hydra_builds_the_model_of_the_command_line(arch: str) -> None:
    yaml = OmegaConf.load(FOLDER / f"{arch}.yaml")
    assert yaml._name == ARCH_MODEL_NAME_REGISTRY[arch]
    config = OmegaConf.merge(OmegaConf.structured(MODEL_DATACLASS_REGISTRY[yaml._name]), yaml)
    model = model_of(arch)
    names = [name for name in config if name != "_name" and not OmegaConf.is_interpolation(config, name)]
    assert {name: getattr(model, name) for name in names} == {name: config[name] for name in names}


@pytest.mark.parametrize("arch", STOCK)
def test_the_sizes_are_those_of_fairseq(arch: str) -> None:
    ours, theirs = sizes(arch), sizes(STOCK[arch])
    shared = {name for name in ours.keys() & theirs.keys() if not name.endswith(OTHER)}
    assert len(shared) > 15
    assert {name: ours[name] for name in shared} == {name: theirs[name] for name in shared}
