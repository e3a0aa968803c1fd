"""Test that converted BERT, RoBERTa and fairseq models keep their logits, and that changes are reported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("fairseq")
pytest.importorskip("transformers")

import transformers
from integration import masked_lm, support
from support_exchange import (
    BERT_WORDS,
    LENGTH,
    SIZES,
    WORDS,
    batch,
    close,
    imported,
    in_fairseq,
    in_transformers,
    logits,
    random_model,
    saved,
)

import fairseq_posenc
from fairseq_posenc.__main__ import main
from fairseq_posenc.compat import CheckpointError
from fairseq_posenc.encodings import StackShape, build, names
from fairseq_posenc.hub.convert import M4M_FACTS, converted
from fairseq_posenc.hub.ids import reordered
from fairseq_posenc.hub.names import from_fairseq
from fairseq_posenc.hub.pretrained import read

# -- Hugging Face's models ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "size", "settings"),
    [
        *((kind, size, {}) for kind in ("bert", "roberta") for size in SIZES),
        ("bert", "deep", {"position_embedding_type": "relative_key"}),
        ("bert", "wide", {"position_embedding_type": "relative_key_query"}),
        ("roberta", "wide", {"position_embedding_type": "relative_key_query"}),
        ("bert", "wide", {"tie_word_embeddings": False}),
        ("bert", "tiny", {"hidden_act": "gelu_new"}),
        ("bert", "tiny", {"hidden_act": "relu"}),
    ],
)
def test_a_model_of_hugging_face_keeps_its_logits(
    kind: str, size: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    """A BERT has two segments. RoBERTa counts tokens, so it can have padding on the left, too."""
    theirs = random_model(kind, size, **settings)
    inputs = batch(kind, left=kind == "roberta" and size != "wide")
    if kind == "bert":
        inputs["token_type_ids"] = (torch.arange(12) > 5).long().expand(2, -1)
    ours = fairseq_posenc.load(saved(theirs, tmp_path / "hf", safe=size != "deep"))
    close(logits(ours, inputs), logits(theirs, inputs))
    positions = {"relative_key": "shaw", "relative_key_query": "m4"}
    assert ours.config.pos_enc.split("+")[0] == positions.get(settings.get("position_embedding_type", ""), "learned")
    assert ours.config.tied == settings.get("tie_word_embeddings", True)


def test_weights_in_several_files(tmp_path: Path) -> None:
    theirs = random_model("bert")
    theirs.save_pretrained(tmp_path / "hf", max_shard_size="20KB")
    saved_files = list((tmp_path / "hf").glob("model-*.safetensors"))
    assert len(saved_files) > 2
    (tmp_path / "hf" / "vocab.txt").write_text("\n".join(BERT_WORDS), "utf-8")
    close(logits(fairseq_posenc.load(tmp_path / "hf"), batch("bert")), logits(theirs, batch("bert")))
    saved_files[0].unlink()
    with pytest.raises(CheckpointError, match="Download"):
        fairseq_posenc.load(tmp_path / "hf")


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


@pytest.mark.parametrize(
    ("kind", "positions", "name"),
    [
        ("bert", "absolute", "learned"),
        ("roberta", "absolute", "learned"),
        ("bert", "relative_key_query", "m4+segments-input"),
    ],
)
def test_fairseq_gets_the_same_model(
    kind: str, positions: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command says what loads the model, and whether the ids changed."""
    theirs = random_model(kind, position_embedding_type=positions)
    folder = imported(saved(theirs, tmp_path / "hf"), tmp_path / "out", "--pos-enc", name)
    printed, inputs = capsys.readouterr().out, batch(kind)
    if name == "m4+segments-input":
        inputs["token_type_ids"] = (torch.arange(12) > 5).long().expand(2, -1)
    order = BERT_ORDER if kind == "bert" else list(range(WORDS))
    close(their_logits(in_fairseq(folder), inputs, order), logits(theirs, inputs))
    assert f"fairseq_posenc.load('{folder}')" in printed
    assert ("the ids are in fairseq's order" in printed) == (kind == "bert")
    loaded = fairseq_posenc.load(folder).state_dict()
    assert all(torch.equal(loaded[key], t) for key, t in read(folder / "checkpoint.pt").tensors.items())


def test_training_continues_from_the_checkpoint(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Train with the printed flags. The first loss is the same, although no flag sets the start of M4M's table."""
    data = masked_lm.write_corpus(tmp_path / "data-bin")
    size = len(masked_lm.PIECES) + 5
    theirs = transformers.RobertaForMaskedLM(
        transformers.RobertaConfig(size, max_position_embeddings=26, pad_token_id=1, type_vocab_size=1, **SIZES["tiny"])
    )
    folder = imported(
        saved(theirs, tmp_path / "hf"), tmp_path / "out", "--pos-enc", "learned+m4m", "--pos-enc-args", "clip=16"
    )
    from fairseq_posenc.hub.checkpoint import flags

    model = flags(read(folder / "checkpoint.pt"))[4:]
    assert model[model.index("--pos-enc-args") + 1] == "clip=16"
    start = ["--finetune-from-model", folder / "checkpoint.pt", "--save-dir", tmp_path / "save"]
    run = masked_lm.train(data, *start, "--max-update", 2, "--lr", "1e-9", "--no-save", model=model)
    assert "was trained otherwise" not in caplog.text
    loaded = in_fairseq(folder).state_dict()
    for name, tensor in run.model.state_dict().items():
        torch.testing.assert_close(tensor, loaded[name], rtol=0, atol=1e-6)


def serves(name: str) -> bool:
    try:
        build(name, None, StackShape(2, 2, 16, LENGTH, has_cls=True))
    except ValueError:
        return False
    return True


ENCODERS = [name for name in names() if serves(name)]


def test_options_may_stand_in_brackets(tmp_path: Path) -> None:
    folder = saved(random_model("bert", "tiny"), tmp_path / "hf")
    first = imported(folder, tmp_path / "first", "--pos-enc", "m4[clip=3]")
    second = imported(folder, tmp_path / "second", "--pos-enc", "m4", "--pos-enc-args", "clip=3")
    one, other = (fairseq_posenc.load(out / "checkpoint.pt") for out in (first, second))
    assert one.config == other.config
    assert one.encoder.pos.m4.weight.shape[-2] == 7


@pytest.mark.parametrize("name", ENCODERS)
def test_a_model_can_get_any_encoding(name: str, tmp_path: Path) -> None:
    source = reordered(read(saved(random_model("bert", "tiny"), tmp_path / "hf")))
    model, report = converted(source, name)
    copied = [key for key in report.copied if ".pos." not in key]
    assert len(copied) == len([key for key in model.tensors if ".pos." not in key])
    position = {key for key in model.tensors if ".pos." in key}
    assert position == {key for key in {*report.new, *report.copied} if ".pos." in key}
    assert ("encoder.pos.learned.weight" in report.dropped) == (name != "learned")


def test_new_tables_start_as_their_encoding_says(tmp_path: Path) -> None:
    source = read(saved(random_model("bert"), tmp_path / "hf"))
    for name, std, key in (("m4", 0.02, "m4"), ("m4m", 0.02, "m4m"), ("t5", 0.0, "t5")):
        model, report = converted(source, name)
        assert model.tensors[f"encoder.pos.{key}.weight"].std().item() == pytest.approx(std, rel=0.1, abs=1e-9)
        assert (M4M_FACTS in report.notes) == (name == "m4m")
        assert model.config.pos_enc_args is None
    model, _ = converted(source, "m4m", "init_std=0.3")
    assert model.tensors["encoder.pos.m4m.weight"].std().item() == pytest.approx(0.3, rel=0.1)


def test_tables_of_other_layers_are_noted(tmp_path: Path) -> None:
    source = read(saved(random_model("bert"), tmp_path / "hf"))
    model, report = converted(source, "m4m+m4m-2", "m4m.layers=1,m4m_2.layers=2")
    for key in ("m4m", "m4m-2"):
        assert model.tensors[f"encoder.pos.{key}.weight"].std().item() == pytest.approx(0.02, rel=0.1)
    assert report.notes.count(M4M_FACTS) == 1
    _, report = converted(model, "m4m+m4m-2", "m4m.layers=2,m4m_2.layers=1")
    changed = [note.partition(" is active in other layers") for note in report.notes]
    assert [name for name, found, _ in changed if found] == ["m4m", "m4m-2"]


def test_longer_and_shorter_tables(tmp_path: Path) -> None:
    source = read(saved(random_model("roberta"), tmp_path / "hf"))
    table = source.tensors["encoder.pos.learned.weight"]
    for length in (8, 33):
        model, report = converted(source, "learned", max_length=length)
        new_table, rows = model.tensors["encoder.pos.learned.weight"], min(length, LENGTH)
        assert len(new_table) == length
        close(new_table[:rows], table[:rows])
        assert f"the first {rows} rows are copied" in report.new["encoder.pos.learned.weight"]


# -- from fairseq -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return masked_lm.write_corpus(tmp_path_factory.mktemp("corpus") / "data-bin")


def trained(data: Path, folder: Path, *more: Any, **parts: Any) -> tuple[Any, Path]:
    """Return a model and its checkpoint."""
    save = ["--save-dir", folder, "--max-update", 2, "--no-epoch-checkpoints"]
    run = masked_lm.train(data, *save, *more, **parts)
    return run.model.eval(), folder / "checkpoint_last.pt"


def tokens_of(data: Path) -> dict[str, Tensor]:
    _, task = masked_lm.built(data)
    ids = masked_lm.batches(task)[0]["net_input"]["unmasked_tokens"]
    return {"input_ids": ids, "attention_mask": ids.ne(1).long()}


def fairseq_logits(model: Any, inputs: dict[str, Tensor]) -> Tensor:
    ids = inputs["input_ids"]
    with torch.no_grad():
        output, _ = model(ids, unmasked_tokens=ids)
    return output[inputs["attention_mask"].bool()]


@pytest.mark.parametrize("name", ENCODERS)
def test_an_exported_model_keeps_its_logits(name: str, data: Path, tmp_path: Path) -> None:
    model, path = trained(data, tmp_path / "save", "--pos-enc", name)
    assert main(["export-hf", str(path), "--output", str(tmp_path / "out")]) == 0
    inputs = tokens_of(data)
    close(logits(fairseq_posenc.load(tmp_path / "out"), inputs), fairseq_logits(model, inputs))
    close(logits(in_transformers(tmp_path / "out", "AutoModelForMaskedLM"), inputs), fairseq_logits(model, inputs))


@pytest.mark.parametrize(
    "flags",
    [
        ["--encoder-normalize-before"],
        ["--untie-weights-roberta"],
        ["--layernorm-embedding"],  # this flag of fairseq switches the norm off
        ["--pos-enc", "sinusoidal", "--pos-enc-defaults", "sinusoidal.freq=t2t"],
        ["--activation-fn", "relu", "--layer-norm-eps", "1e-3"],
        ["--pos-enc", "learned+m4m", "--pos-enc-args", "m4m.clip=5,gate_offset=1"],
        ["--pos-enc", "shaw[clip=5]+t5[share=none]"],
    ],
)
def test_an_exported_model_keeps_its_settings(flags: list[str], data: Path, tmp_path: Path) -> None:
    model, path = trained(data, tmp_path / "save", *flags)
    assert main(["export-hf", str(path), "--output", str(tmp_path / "out")]) == 0
    inputs = tokens_of(data)
    close(logits(fairseq_posenc.load(tmp_path / "out"), inputs), fairseq_logits(model, inputs))
    close(logits(fairseq_posenc.load(path), inputs), fairseq_logits(model, inputs))
    again = imported(path, tmp_path / "again", "--pos-enc", "learned")
    assert in_fairseq(again).encoder.args.encoder_normalize_before == ("--encoder-normalize-before" in flags)


def test_a_fine_tuned_model_is_exported_without_its_heads(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, path = trained(data, tmp_path / "save")
    state = torch.load(path, weights_only=True)
    state["model"]["classification_heads.pairs.dense.weight"] = torch.ones(2, 2)
    state["cfg"]["model"]["max_positions"], state["cfg"]["task"] = (
        None,
        {"max_positions": LENGTH + 4, "data": str(data)},
    )
    torch.save(state, tmp_path / "tuned.pt")
    assert main(["export-hf", str(tmp_path / "tuned.pt"), "--output", str(tmp_path / "out")]) == 0
    assert "dropped: classification_heads.pairs.dense.weight" in capsys.readouterr().out
    assert fairseq_posenc.load(tmp_path / "out").config.max_length == LENGTH + 4


def test_transformers_needs_code_for_all_but_learned_positions(data: Path, tmp_path: Path) -> None:
    for name in ("learned", "m4"):
        _, path = trained(data, tmp_path / name, "--pos-enc", name)
        assert main(["export-hf", str(path), "--output", str(tmp_path / f"{name}-out")]) == 0
    inputs = tokens_of(data)
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "learned-out").eval()
    close(logits(theirs, inputs), logits(fairseq_posenc.load(tmp_path / "learned-out"), inputs))
    assert not list((tmp_path / "learned-out").glob("*.py"))
    with pytest.raises(ValueError, match="trust_remote_code"):
        transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "m4-out", trust_remote_code=False)


def test_stock_roberta_is_read(data: Path, tmp_path: Path) -> None:
    """Convert it to another encoding, and without changes."""
    model, path = trained(data, tmp_path / "save", model=masked_lm.STOCK, task=masked_lm.STOCK_TASK)
    inputs = tokens_of(data)
    close(logits(fairseq_posenc.load(path), inputs), fairseq_logits(model, inputs))
    folder = imported(path, tmp_path / "out", "--pos-enc", "learned+m4")
    report = json.loads((folder / "report.json").read_text("utf-8"))
    assert "encoder.pos.learned.weight" in report["copied"]
    assert list(report["new"]) == ["encoder.pos.m4.weight"]


def test_names_of_2019_are_read() -> None:
    q, k, v = (torch.full((2, 2), float(i)) for i in range(3))
    old = {
        "decoder.sentence_encoder.layers.0.self_attn.in_proj_weight": torch.cat([q, k, v]),
        "decoder.sentence_encoder.emb_layer_norm.weight": torch.ones(2),
        "decoder.lm_head.bias": torch.zeros(3),
        "classification_heads.x.bias": torch.zeros(1),
    }
    tensors, unused = from_fairseq(old)
    assert set(tensors) == {
        *(f"encoder.layers.0.self_attn.{x}_proj.weight" for x in "qkv"),
        "encoder.layernorm_embedding.weight",
        "lm_head.bias",
    }
    assert (tensors["encoder.layers.0.self_attn.k_proj.weight"] == 1).all()
    assert unused == ["classification_heads.x.bias"]


HIDDEN = """
import sys
for name in ("fairseq", "fairseq_cli", "transformers", "omegaconf", "hydra"):
    sys.modules[name] = None  # not installed
import torch, fairseq_posenc
model = fairseq_posenc.load(sys.argv[1])
inputs = torch.load(sys.argv[2], weights_only=True)
with torch.no_grad():
    torch.save(model(**inputs), sys.argv[3])
assert not any(name.split(".")[0] == "fairseq" and module for name, module in sys.modules.items())
"""


def test_fairseq_is_not_needed(data: Path, tmp_path: Path) -> None:
    model, path = trained(data, tmp_path / "save", "--pos-enc", "shaw")
    assert main(["export-hf", str(path), "--output", str(tmp_path / "out")]) == 0
    inputs = tokens_of(data)
    torch.save(inputs, tmp_path / "inputs.pt")
    words = [sys.executable, "-c", HIDDEN, tmp_path / "out", tmp_path / "inputs.pt", tmp_path / "logits.pt"]
    subprocess.run([str(word) for word in words], check=True, env=support.environment(package=True), timeout=120)
    loaded = torch.load(tmp_path / "logits.pt", weights_only=True)[inputs["attention_mask"].bool()]
    close(loaded, fairseq_logits(model, inputs))


@pytest.mark.parametrize("name", ["learned", "m4", "m3", "tupe"])
def test_the_encoder_compiles(name: str) -> None:
    from fairseq_posenc.hub import LanguageModel, ModelConfig

    model = LanguageModel(ModelConfig(2, 16, 32, 2, LENGTH, WORDS, pos_enc=name)).eval()
    torch._dynamo.reset()
    step = torch.compile(model.encoder, fullgraph=True, backend="aot_eager")
    inputs = batch("roberta")
    where = model.positions(inputs["input_ids"].masked_fill(inputs["attention_mask"].eq(0), 1))
    x = model.embed_tokens(inputs["input_ids"])
    tokens = inputs["attention_mask"].bool()  # positions of padding have no effect, and differ in a graph
    with torch.no_grad():
        close(step(x, where)[0][tokens], model.encoder(x, where)[0][tokens])
