"""Test that converted BERT, RoBERTa and fairseq models keep their logits, and that changes are reported."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from integration import masked_lm
from integration.cases import serves
from safetensors.torch import load_file, save_file
from support_exchange import (
    LENGTH,
    MODELS,
    WORDS,
    batch,
    cases,
    close,
    exported,
    imported,
    in_fairseq,
    in_transformers,
    logits,
    random_model,
    saved,
)
from torch import Tensor

import fairseq_posenc
from fairseq_posenc.__main__ import main
from fairseq_posenc.compat import CheckpointError
from fairseq_posenc.encodings import names
from fairseq_posenc.hub import LanguageModel, ModelConfig
from fairseq_posenc.hub.convert import M4M_FACTS, converted
from fairseq_posenc.hub.ids import Pretrained, reordered
from fairseq_posenc.hub.names import from_fairseq
from fairseq_posenc.hub.pretrained import read

#: Segments of `batch` with two texts.
SECOND = (torch.arange(12) > 5).long().expand(2, -1)

#: Defaults of transformers, which config.json may omit.
OMITTED = {"hidden_act": "gelu", "layer_norm_eps": 1e-12, "position_embedding_type": "absolute", "type_vocab_size": 2}

# -- Hugging Face's models ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "size", "settings"), MODELS["hugging_face"])
def test_a_model_of_hugging_face_keeps_its_logits(
    kind: str, size: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    """A BERT has two segments. RoBERTa counts tokens, so it can have padding on the left, too."""
    theirs = random_model(kind, size, **settings)
    inputs = batch(kind, left=kind == "roberta" and size != "wide")
    if kind == "bert":
        inputs["token_type_ids"] = SECOND
    folder = saved(theirs, tmp_path / "hf", safe=size != "deep")
    written = json.loads((folder / "config.json").read_text("utf-8"))
    kept = {name: value for name, value in written.items() if (name, value) not in OMITTED.items()}
    (folder / "config.json").write_text(json.dumps(kept), "utf-8")
    ours = fairseq_posenc.load(folder)
    close(logits(ours, inputs), logits(theirs, inputs))
    positions = {"relative_key": "shaw", "relative_key_query": "m4"}
    assert ours.config.pos_enc.split("+")[0] == positions.get(settings.get("position_embedding_type", ""), "learned")
    assert ours.config.tied == settings.get("tie_word_embeddings", True)


def test_weights_in_several_files(tmp_path: Path) -> None:
    theirs = random_model("bert")
    folder = saved(theirs, tmp_path / "hf", max_shard_size="20KB")
    assert not (folder / "model.safetensors").exists()
    close(logits(fairseq_posenc.load(folder), batch("bert")), logits(theirs, batch("bert")))
    next(folder.glob("model-*.safetensors")).unlink()
    with pytest.raises(CheckpointError, match="Download this file"):
        fairseq_posenc.load(folder)


def test_names_of_tensorflow_are_read(tmp_path: Path) -> None:
    """The published files of BERT have them."""
    theirs = random_model("bert")
    path = saved(theirs, tmp_path / "hf") / "model.safetensors"
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    weights = {re.sub(r"LayerNorm\.\w+$", lambda end: old[end[0]], name): t for name, t in load_file(path).items()}
    save_file(weights, path, metadata={"format": "pt"})
    close(logits(fairseq_posenc.load(path.parent), batch("bert")), logits(theirs, batch("bert")))


# -- into fairseq -------------------------------------------------------------------------------------------


def their_logits(model: Any, inputs: dict[str, Tensor], order: list[int]) -> Tensor:
    """Return the logits of a fairseq model whose id i is the id `order[i]` of the source."""
    back = torch.tensor(order).argsort()
    ids = back[inputs["input_ids"]]
    with torch.no_grad():
        logits_by_id, _ = model(ids, segments=inputs.get("token_type_ids", torch.zeros_like(ids)))
    return logits_by_id[inputs["attention_mask"].bool()][:, back]


#: fairseq's order of BERT_WORDS: [CLS], [PAD], [SEP], [UNK], the others, [MASK]
BERT_ORDER = [3, 0, 5, 2, 1, 4, *range(7, WORDS), 6]


@pytest.mark.parametrize(("kind", "positions", "name"), MODELS["into_fairseq"])
def test_fairseq_gets_the_same_model(
    kind: str, positions: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command says what loads the model, and whether the ids changed."""
    theirs = random_model(kind, position_embedding_type=positions)
    folder = imported(saved(theirs, tmp_path / "hf"), tmp_path / "out", "--pos-enc", name)
    printed, inputs = capsys.readouterr().out, batch(kind)
    if name == "m4+segments-input":
        inputs["token_type_ids"] = SECOND
    order = BERT_ORDER if kind == "bert" else list(range(WORDS))
    close(their_logits(in_fairseq(folder), inputs, order), logits(theirs, inputs))
    assert f"fairseq_posenc.load('{folder}')" in printed
    assert ("the ids are in fairseq's order" in printed) == (kind == "bert")
    loaded = fairseq_posenc.load(folder).state_dict()
    assert all(torch.equal(loaded[key], t) for key, t in read(folder / "checkpoint.pt").tensors.items())


# -- another encoding ---------------------------------------------------------------------------------------


ENCODERS = [name for name in names() if serves(name, causal=False)]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Pretrained:
    return reordered(read(saved(random_model("bert"), tmp_path_factory.mktemp("bert") / "hf")))


@pytest.mark.parametrize("name", ENCODERS)
def test_a_model_can_get_any_encoding(name: str, source: Pretrained) -> None:
    model, report = converted(source, name)
    assert {key for key in report.copied if ".pos." not in key} == {key for key in model.tensors if ".pos." not in key}
    position = {key for key in model.tensors if ".pos." in key}
    assert position == {key for key in {*report.new, *report.copied} if ".pos." in key}
    assert ("encoder.pos.learned.weight" in report.dropped) == (name != "learned")


def test_new_tables_start_as_their_encoding_says(source: Pretrained) -> None:
    """A table of m4m is drawn from N(0, 0.02), with a note, unless the options set its start."""
    for name, args, std in (("m4", None, 0.02), ("m4m", None, 0.02), ("t5", None, 0.0), ("m4m", "init_std=0.3", 0.3)):
        model, report = converted(source, name, args)
        assert model.tensors[f"encoder.pos.{name}.weight"].std().item() == pytest.approx(std, rel=0.1, abs=1e-9)
        assert (M4M_FACTS in report.notes) == (name == "m4m")
        assert model.config.pos_enc_args == args


def test_tables_of_other_layers_are_noted(source: Pretrained) -> None:
    model, _ = converted(source, "m4m", "layers=1")
    _, report = converted(model, "m4m", "layers=2")
    assert any("m4m is active in other layers than in the source" in note for note in report.notes)


@pytest.mark.parametrize("length", [8, 33])
def test_longer_and_shorter_tables(length: int, source: Pretrained) -> None:
    name, rows = "encoder.pos.learned.weight", min(length, LENGTH)
    model, report = converted(source, "learned+segments-input", max_length=length)
    assert len(model.tensors[name]) == length
    close(model.tensors[name][:rows], source.tensors[name][:rows])
    assert f"the first {rows} rows are copied" in report.new[name]


# -- from fairseq -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return masked_lm.write_corpus(tmp_path_factory.mktemp("corpus") / "data-bin")


#: Sentences of the corpus, whose dictionary has four special symbols; the first is as long as the models allow.
INPUTS = batch("roberta", words=4 + len(masked_lm.PIECES), columns=masked_lm.LENGTH)


def fairseq_logits(model: Any) -> Tensor:
    with torch.no_grad():
        output, _ = model(INPUTS["input_ids"], unmasked_tokens=INPUTS["input_ids"])
    return output[INPUTS["attention_mask"].bool()]


@pytest.mark.parametrize(("flags", "model"), cases(masked_lm, ENCODERS))
def test_an_exported_model_keeps_its_logits(flags: str, model: str, data: Path, tmp_path: Path) -> None:
    """transformers itself has a class for learned positions; all other models need their own code."""
    source, folder = exported(masked_lm, data, tmp_path, *flags.split(), model=model)
    is_roberta = not list(folder.glob("*.py"))
    assert is_roberta == (flags in ("--pos-enc learned", "--untie-weights-roberta", ""))
    if is_roberta:
        other = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    else:
        other = in_transformers(folder, "AutoModelForMaskedLM")
        labels = INPUTS["input_ids"]
        loss = torch.nn.functional.cross_entropy(other(labels).logits.flatten(0, 1), labels.flatten())
        close(other(labels, labels=labels).loss, loss)
    for each in (other, fairseq_posenc.load(folder), fairseq_posenc.load(tmp_path / "checkpoint.pt")):
        close(logits(each, INPUTS), fairseq_logits(source))


def test_a_checkpoint_of_fairseq_gets_another_encoding(data: Path, tmp_path: Path) -> None:
    exported(masked_lm, data, tmp_path, "--encoder-normalize-before", model="STOCK")
    folder = imported(tmp_path / "checkpoint.pt", tmp_path / "out", "--pos-enc", "learned+m4")
    report = json.loads((folder / "report.json").read_text("utf-8"))
    assert "encoder.pos.learned.weight" in report["copied"]
    assert list(report["new"]) == ["encoder.pos.m4.weight"]
    assert in_fairseq(folder).encoder.args.encoder_normalize_before


def test_a_fine_tuned_model_is_exported_without_its_heads(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exported(masked_lm, data, tmp_path)
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    state["model"]["classification_heads.pairs.dense.weight"] = torch.ones(2, 2)
    state["cfg"]["model"]["max_positions"] = None
    state["cfg"]["task"] = {"max_positions": LENGTH + 4, "data": str(data)}
    torch.save(state, tmp_path / "tuned.pt")
    assert main(["export-hf", str(tmp_path / "tuned.pt"), "--output", str(tmp_path / "out")]) == 0
    assert "dropped: classification_heads.pairs.dense.weight" in capsys.readouterr().out
    assert fairseq_posenc.load(tmp_path / "out").config.max_length == LENGTH + 4


def test_names_of_2019_are_read() -> None:
    old = {
        "decoder.sentence_encoder.layers.0.self_attn.in_proj_weight": torch.arange(3.0).repeat_interleave(2)[:, None],
        "decoder.sentence_encoder.emb_layer_norm.weight": torch.ones(2),
        "decoder.lm_head.bias": torch.zeros(3),
        "classification_heads.x.bias": torch.zeros(1),
    }
    tensors, unused = from_fairseq(old)
    parts = {f"encoder.layers.0.self_attn.{x}_proj.weight": i for i, x in enumerate("qkv")}
    assert set(tensors) == {*parts, "encoder.layernorm_embedding.weight", "lm_head.bias"}
    assert all((tensors[name] == i).all() for name, i in parts.items())
    assert unused == ["classification_heads.x.bias"]


@pytest.mark.parametrize("name", ["learned", "m3"])
def test_the_model_compiles_to_one_graph(name: str) -> None:
    model, inputs = LanguageModel(ModelConfig(2, 16, 32, 2, LENGTH, WORDS, pos_enc=name)).eval(), batch("roberta")
    torch._dynamo.reset()
    close(logits(torch.compile(model, fullgraph=True, backend="aot_eager"), inputs), logits(model, inputs))
