"""Test --pos-enc and the related flags: what each stack gets, what presets give, what is stored, what is refused."""

from __future__ import annotations

import dataclasses
import functools
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import support_questions
from fairseq import tasks, utils
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_DATACLASS_REGISTRY
from fairseq.models.transformer import TransformerConfig
from omegaconf import OmegaConf

from fairseq_posenc.core.syntax import parse_options
from fairseq_posenc.models import config

from . import lm, masked_lm, support


def built(words: list[str]) -> tuple[Any, Any]:
    """Return the options of a model after it was built, and the model."""
    cfg = support.parse(words)
    utils.import_user_module(cfg.common)
    model = tasks.setup_task(cfg.task).build_model(cfg.model)
    return cfg.model, model


def encodings(model: Any) -> list[str]:
    return [str(module) for name, module in model.named_modules() if name.endswith(".pos")]


# -- what each stack gets ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("flags", "expected"), support.table("options.toml", "stacks").items())
def test_a_stack_gets_what_its_own_flags_say_or_else_pos_enc(data: Path, flags: str, expected: list[str]) -> None:
    stored, model = built(support.command_line(data, *flags.split()))
    for pos, beginning in zip((model.encoder.pos, model.decoder.pos), expected, strict=True):
        assert str(pos).startswith(beginning), str(pos)
    again = tasks.setup_task(support.parse(support.command_line(data)).task).build_model(stored)
    assert encodings(again) == encodings(model)
    assert not any("[" in str(getattr(stored, f"pos_enc{side}")) for side in ("", "_encoder", "_decoder"))


SPELLINGS = (
    ["--pos-enc", "m4[clip=3,share=none]"],
    ["--pos-enc", "m4[clip=3]", "--pos-enc-args", "share=none"],
    ["--pos-enc", "m4", "--pos-enc-args", "clip=3,share=none"],
)


@pytest.mark.parametrize("module", [support, masked_lm, lm], ids=["translation", "masked_lm", "lm"])
def test_the_options_of_a_model_store_one_spelling(module: Any, corpora: dict[Any, Path]) -> None:
    """fairseq saves these options in each checkpoint."""
    for flags in SPELLINGS:
        stored, model = built(module.command_line(corpora[module], *flags))
        assert (stored.pos_enc, stored.pos_enc_args) == ("m4", "clip=3,share=none")
        assert all("clip=3,share=none" in text for text in encodings(model))


@pytest.mark.parametrize("field", dataclasses.fields(config.PosEncConfig), ids=lambda field: field.name)
def test_a_checkpoint_may_be_older_than_an_option(data: Path, field: dataclasses.Field[Any]) -> None:
    cfg = support.parse(support.command_line(data))
    older = Namespace(**{name: value for name, value in cfg.model.items() if name != field.name})
    older._name = "posenc_transformer_tiny"
    assert str(tasks.setup_task(cfg.task).build_model(older).encoder.pos).startswith("sinusoidal(")


def test_the_path_reaches_every_self_attention(data: Path) -> None:
    for words, path in (([], "auto"), (["--pos-enc-path", "explicit"], "explicit")):
        model, _ = support.built(data, "--pos-enc", "t5", *words)
        assert {layer.self_attn.path for layer in (*model.encoder.layers, *model.decoder.layers)} == {path}


# -- what presets give ------------------------------------------------------------------------------------


@functools.cache
def model_of(arch: str, *arguments: str) -> Any:
    """Return the options of the model for `--arch` and further arguments."""
    task = "language_modeling" if "_lm" in arch else "translation"
    words = f"data --task {task} --optimizer adam --max-tokens 1 --arch {arch}".split()
    return support.parse([*words, *arguments]).model


@pytest.mark.parametrize(("words", "expected"), support.table("options.toml", "presets").items())
def test_the_t2t_frequencies_come_wherever_a_wmt_preset_meets_sinusoids(words: str, expected: list[str]) -> None:
    model = model_of("posenc_transformer_wmt_en_de", *words.split())
    config.check_overrides(model)
    for side, text in zip(("encoder", "decoder"), expected, strict=True):
        name, _, args = text.partition(" ")
        chosen = config.encoding_of(model, side)
        assert chosen.name == name
        assert {key.rpartition(".")[2]: value for key, value in chosen.args.items()} == parse_options(args)


FOLDER = support.PLUGIN / "config" / "model"
OURS = sorted(path.stem for path in FOLDER.glob("*.yaml"))
#: Architectures of fairseq whose sizes ours have.
STOCK = support.table("options.toml", "stock")
#: Names, fairseq's own positions, and the length, which our masked language models take from the task.
OTHER = ("arch", "_name", "no_token_positional_embeddings", "max_positions")


def sizes(arch: str) -> dict[str, Any]:
    """Return the options of the model as it is built: in translation models, the decoder follows the encoder."""
    model = model_of(arch)
    if not hasattr(model, "decoder_layers"):
        return dict(model) if OmegaConf.is_config(model) else vars(model)
    nested = config.nested_config(model) if arch in STOCK else TransformerConfig.from_namespace(model)
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


# -- what is refused --------------------------------------------------------------------------------------

#: By task: the module that builds its models, and other arguments of the builder.
BUILDERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "translation": (support, {}),
    "language_modeling": (lm, {"task": lm.STOCK_TASK}),
    "posenc_lm_memory": (lm, {}),
    "posenc_masked_lm": (masked_lm, {}),
    "masked_lm": (masked_lm, {"task": masked_lm.STOCK_TASK}),
    "posenc_question_generation": (support_questions, {}),
}


@pytest.fixture(scope="module")
def folders(corpora: dict[Any, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[Any, Path]:
    """Return the corpus of each module that builds models."""
    questions = support_questions.write_questions(tmp_path_factory.mktemp("questions") / "prepared")
    return {**corpora, support_questions: questions}


@pytest.mark.parametrize(
    ("task", "flags", "message"),
    [(task, *row) for task in BUILDERS for row in support.table("refused.toml", task).items()],
)
def test_what_cannot_be_is_refused_with_its_flag(task: str, flags: str, message: str, folders: dict[Any, Path]) -> None:
    module, parts = BUILDERS[task]
    with pytest.raises(ValueError, match=message):
        module.built(folders[module], *flags.split(), **parts)


def test_every_refused_option_of_translation_is_in_the_table() -> None:
    names = {field.name for field in dataclasses.fields(config.TransformerPosEncConfig)}
    refused = {config.flag(name) for name in config.REFUSED_IN_TRANSLATION.keys() & names}
    assert refused <= {flags.split()[0] for flags in support.table("refused.toml", "translation")}


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
    inputs = support.batches(task)[0]["net_input"]
    assert dict(zip(("encoder", "decoder"), model.max_positions(), strict=True))[short] == 4
    with pytest.raises(ValueError, match=f"defined up to 4 positions, but there are .*: raise {flag}"):
        model(**inputs)
