"""Exchange: BERT, RoBERTa and fairseq's checkpoints keep their logits, and what an encoding changes is said."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("fairseq")
pytest.importorskip("transformers")

import transformers
from integration import masked_lm, support

import fairseq_posenc
from fairseq_posenc.__main__ import main
from fairseq_posenc.compat import CheckpointError
from fairseq_posenc.encodings import StackShape, build, names
from fairseq_posenc.hub import folder as folders
from fairseq_posenc.hub.convert import M4M_FACTS, converted
from fairseq_posenc.hub.names import from_fairseq
from fairseq_posenc.hub.pretrained import read, reordered

ROOT = Path(__file__).resolve().parents[1]
LENGTH, WORDS = 20, 40
SIZES = {
    "tiny": {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 20},
    "wide": {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 96},
    "deep": {"hidden_size": 24, "num_hidden_layers": 5, "num_attention_heads": 4, "intermediate_size": 32},
}
BERT_WORDS = ["[PAD]", "a", "[UNK]", "[CLS]", "##b", "[SEP]", "[MASK]", *(f"w{i}" for i in range(WORDS - 7))]


def made(kind: str, size: str = "wide", **more: Any) -> Any:
    """A model of Hugging Face's with random weights, none of them at its start."""
    torch.manual_seed(3)
    if kind == "bert":
        config = transformers.BertConfig(vocab_size=WORDS, max_position_embeddings=LENGTH, **SIZES[size], **more)
        model = transformers.BertForMaskedLM(config)
    else:
        own = {"max_position_embeddings": LENGTH + 2, "type_vocab_size": 1, "pad_token_id": 1, "layer_norm_eps": 1e-5}
        model = transformers.RobertaForMaskedLM(transformers.RobertaConfig(WORDS, **{**own, **SIZES[size], **more}))
    return support.move(model).eval()


def saved(model: Any, folder: Path, *, safe: bool = True) -> Path:
    model.save_pretrained(folder, safe_serialization=safe)
    if model.config.model_type == "bert":
        (folder / "vocab.txt").write_text("\n".join(BERT_WORDS) + "\n", "utf-8")
    return folder


def batch(kind: str, *, left: bool = False) -> dict[str, Tensor]:
    """Two sentences, one of them with pads."""
    random = torch.Generator().manual_seed(1)
    ids = torch.randint(7, WORDS - 1, (2, 12), generator=random)
    bos, eos, pad = (3, 5, 0) if kind == "bert" else (0, 2, 1)
    mask = torch.ones(2, 12, dtype=torch.int64)
    ids[:, 0], ids[0, -1], ids[1, 7] = bos, eos, eos
    ids[1, 8:], mask[1, 8:] = pad, 0
    if left:
        ids[1], mask[1] = ids[1].roll(4), mask[1].roll(4)
    return {"input_ids": ids, "attention_mask": mask}


@torch.no_grad()
def logits(model: Any, given: dict[str, Tensor]) -> Tensor:
    """Of the tokens, not of pads."""
    found = model(**given)
    return getattr(found, "logits", found)[given["attention_mask"].bool()]


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


# -- Hugging Face's models ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("safe", [True, False])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_a_model_keeps_its_logits(kind: str, safe: bool, size: str, tmp_path: Path) -> None:
    theirs = made(kind, size)
    ours = fairseq_posenc.load(saved(theirs, tmp_path / "hf", safe=safe))
    close(logits(ours, batch(kind)), logits(theirs, batch(kind)))


def test_left_padding_is_padding(tmp_path: Path) -> None:
    """RoBERTa counts tokens; BERT counts columns, so its position ids are given."""
    theirs = made("roberta")
    given = batch("roberta", left=True)
    close(logits(fairseq_posenc.load(saved(theirs, tmp_path / "hf")), given), logits(theirs, given))


def test_bert_keeps_its_segments(tmp_path: Path) -> None:
    theirs = made("bert")
    given = batch("bert")
    given["token_type_ids"] = (torch.arange(12) > 5).long().expand(2, -1)
    ours = fairseq_posenc.load(saved(theirs, tmp_path / "hf"))
    close(logits(ours, given), logits(theirs, given))
    assert not torch.allclose(logits(ours, given), logits(ours, batch("bert")), atol=1e-2)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("kind", "name"), [("relative_key", "shaw"), ("relative_key_query", "m4")])
def test_tables_of_distances_are_shaw_and_m4(kind: str, name: str, size: str, tmp_path: Path) -> None:
    theirs = made("bert", size, position_embedding_type=kind)
    assert any("distance_embedding" in key for key in theirs.state_dict())  # newer transformers ignore the setting
    ours = fairseq_posenc.load(saved(theirs, tmp_path / "hf"))
    assert ours.config.pos_enc == f"{name}+segments-input"
    close(logits(ours, batch("bert")), logits(theirs, batch("bert")))


def test_roberta_with_distances_keeps_its_logits(tmp_path: Path) -> None:
    theirs = made("roberta", position_embedding_type="relative_key_query")
    ours = fairseq_posenc.load(saved(theirs, tmp_path / "hf"))
    close(logits(ours, batch("roberta")), logits(theirs, batch("roberta")))


def test_a_head_of_its_own_stays_one(tmp_path: Path) -> None:
    theirs = made("bert", tie_word_embeddings=False)
    ours = fairseq_posenc.load(saved(theirs, tmp_path / "hf"))
    assert not ours.config.tied
    close(logits(ours, batch("bert")), logits(theirs, batch("bert")))


def test_weights_in_several_files(tmp_path: Path) -> None:
    theirs = made("bert")
    theirs.save_pretrained(tmp_path / "hf", max_shard_size="20KB")
    saved_files = list((tmp_path / "hf").glob("model-*.safetensors"))
    assert len(saved_files) > 2
    (tmp_path / "hf" / "vocab.txt").write_text("\n".join(BERT_WORDS), "utf-8")
    close(logits(fairseq_posenc.load(tmp_path / "hf"), batch("bert")), logits(theirs, batch("bert")))
    saved_files[0].unlink()
    with pytest.raises(CheckpointError, match="download it again"):
        fairseq_posenc.load(tmp_path / "hf")


@pytest.mark.parametrize("activation", ["gelu_new", "relu"])
def test_activations(activation: str, tmp_path: Path) -> None:
    theirs = made("bert", hidden_act=activation)
    ours = fairseq_posenc.load(saved(theirs, tmp_path / "hf"))
    close(logits(ours, batch("bert")), logits(theirs, batch("bert")))


# -- into fairseq -------------------------------------------------------------------------------------------


def imported(source: Path, output: Path, *more: str) -> Path:
    assert main(["import-hf", str(source), "--output", str(output), *more]) == 0
    return output


def in_fairseq(folder: Path) -> Any:
    from fairseq import checkpoint_utils

    overrides = {"data": str(folder)}
    models, _, _ = checkpoint_utils.load_model_ensemble_and_task([str(folder / "checkpoint.pt")], overrides)
    return models[0].eval()


def their_logits(model: Any, given: dict[str, Tensor], order: list[int]) -> Tensor:
    """Of a fairseq model whose id i is the source's `order[i]`."""
    back = torch.tensor(order).argsort()
    ids = back[given["input_ids"]]
    with torch.no_grad():
        found, _ = model(ids, segments=given.get("token_type_ids", torch.zeros_like(ids)))
    return found[given["attention_mask"].bool()][:, back]


#: fairseq's order of BERT_WORDS: [CLS], [PAD], [SEP], [UNK], the others, [MASK]
BERT_ORDER = [3, 0, 5, 2, 1, 4, *range(7, WORDS), 6]


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_fairseq_gets_the_same_model(kind: str, tmp_path: Path) -> None:
    theirs = made(kind)
    folder = imported(saved(theirs, tmp_path / "hf"), tmp_path / "out", "--pos-enc", "learned")
    order = BERT_ORDER if kind == "bert" else list(range(WORDS))
    close(their_logits(in_fairseq(folder), batch(kind), order), logits(theirs, batch(kind)))


def test_fairseq_gets_the_same_model_with_distances(tmp_path: Path) -> None:
    theirs = made("bert", position_embedding_type="relative_key_query")
    source = saved(theirs, tmp_path / "hf")
    folder = imported(source, tmp_path / "out", "--pos-enc", "m4+segments-input")
    given = {**batch("bert"), "token_type_ids": (torch.arange(12) > 5).long().expand(2, -1)}
    close(their_logits(in_fairseq(folder), given, BERT_ORDER), logits(theirs, given))


def test_the_dictionary_is_the_vocabulary(tmp_path: Path) -> None:
    folder = imported(saved(made("bert"), tmp_path / "hf"), tmp_path / "out", "--pos-enc", "none")
    words = [line.split()[0] for line in (folder / "dict.txt").read_text("utf-8").splitlines()]
    assert words == [BERT_WORDS[i] for i in BERT_ORDER[4:-1]]


def test_training_goes_on_from_it(tmp_path: Path) -> None:
    """With the flags that are printed, from the same loss."""
    data = masked_lm.write_corpus(tmp_path / "data-bin")
    size = len(masked_lm.PIECES) + 5
    theirs = transformers.RobertaForMaskedLM(
        transformers.RobertaConfig(size, max_position_embeddings=26, pad_token_id=1, type_vocab_size=1, **SIZES["tiny"])
    )
    folder = imported(saved(theirs, tmp_path / "hf"), tmp_path / "out", "--pos-enc", "learned+m4m")
    from fairseq_posenc.hub.checkpoint import flags

    model = ["--arch", "posenc_roberta", *flags(read(folder / "checkpoint.pt"))]
    start = ["--finetune-from-model", folder / "checkpoint.pt", "--save-dir", tmp_path / "save"]
    run = masked_lm.train(data, *start, "--max-update", 2, "--lr", "1e-9", "--no-save", model=model)
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


@pytest.mark.parametrize("name", ENCODERS)
def test_any_encoding_can_be_put_in(name: str, tmp_path: Path) -> None:
    source = reordered(read(saved(made("bert", "tiny"), tmp_path / "hf")))
    model, report = converted(source, name)
    kept = [key for key in report.copied if ".pos." not in key]
    assert len(kept) == len([key for key in model.tensors if ".pos." not in key])
    position = {key for key in model.tensors if ".pos." in key}
    assert position == {key for key in {*report.made, *report.copied} if ".pos." in key}
    assert ("the absolute table" in report.dropped) == (name != "learned")


def test_new_tables_start_by_their_rule(tmp_path: Path) -> None:
    source = read(saved(made("bert"), tmp_path / "hf"))
    for name, std, key in (("m4", 0.02, "m4"), ("m4m", 0.02, "m4m"), ("t5", 0.0, "t5")):
        model, report = converted(source, name)
        assert model.tensors[f"encoder.pos.{key}.weight"].std().item() == pytest.approx(std, rel=0.1, abs=1e-9)
        assert (M4M_FACTS in report.notes) == (name == "m4m")
    model, _ = converted(source, "m4m", "init_std=0.3")
    assert model.tensors["encoder.pos.m4m.weight"].std().item() == pytest.approx(0.3, rel=0.1)


def test_longer_and_shorter_tables(tmp_path: Path) -> None:
    source = read(saved(made("roberta"), tmp_path / "hf"))
    table = source.tensors["positions.weight"][2:] + source.tensors["types.weight"][0]
    for length in (8, 33):
        model, report = converted(source, "learned", max_length=length)
        found, rows = model.tensors["encoder.pos.learned.weight"], min(length, LENGTH)
        assert len(found) == length
        close(found[:rows], table[:rows])
        assert f"the first {rows} rows copied" in report.made["encoder.pos.learned.weight"]


# -- from fairseq -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return masked_lm.write_corpus(tmp_path_factory.mktemp("corpus") / "data-bin")


def trained(data: Path, folder: Path, *more: Any, **parts: Any) -> tuple[Any, Path]:
    """A model, and its checkpoint."""
    save = ["--save-dir", folder, "--max-update", 2, "--no-epoch-checkpoints"]
    run = masked_lm.train(data, *save, *more, **parts)
    return run.model.eval(), folder / "checkpoint_last.pt"


def tokens_of(data: Path) -> dict[str, Tensor]:
    _, task = masked_lm.built(data)
    ids = masked_lm.batches(task)[0]["net_input"]["unmasked_tokens"]
    return {"input_ids": ids, "attention_mask": ids.ne(1).long()}


def fairseq_logits(model: Any, given: dict[str, Tensor]) -> Tensor:
    ids = given["input_ids"]
    with torch.no_grad():
        found, _ = model(ids, unmasked_tokens=ids)
    return found[given["attention_mask"].bool()]


@pytest.mark.parametrize("name", ENCODERS)
def test_an_exported_model_keeps_its_logits(name: str, data: Path, tmp_path: Path) -> None:
    model, path = trained(data, tmp_path / "save", "--pos-enc", name)
    assert main(["export-hf", str(path), "--output", str(tmp_path / "out")]) == 0
    given = tokens_of(data)
    close(logits(fairseq_posenc.load(tmp_path / "out"), given), fairseq_logits(model, given))


@pytest.mark.parametrize(
    "flags",
    [
        ["--encoder-normalize-before"],
        ["--untie-weights-roberta"],
        ["--layernorm-embedding"],  # switches it off
        ["--pos-enc", "sinusoidal", "--pos-enc-defaults", "sinusoidal.freq=t2t"],
        ["--activation-fn", "relu", "--layer-norm-eps", "1e-3"],
        ["--pos-enc", "learned+m4m", "--pos-enc-args", "m4m.clip=5,gate_offset=1"],
    ],
)
def test_an_exported_model_keeps_its_form(flags: list[str], data: Path, tmp_path: Path) -> None:
    model, path = trained(data, tmp_path / "save", *flags)
    assert main(["export-hf", str(path), "--output", str(tmp_path / "out")]) == 0
    given = tokens_of(data)
    close(logits(fairseq_posenc.load(tmp_path / "out"), given), fairseq_logits(model, given))
    close(logits(fairseq_posenc.load(path), given), fairseq_logits(model, given))
    again = imported(path, tmp_path / "again", "--pos-enc", "learned")
    assert in_fairseq(again).encoder.args.encoder_normalize_before == ("--encoder-normalize-before" in flags)


def test_a_fine_tuned_model_leaves_its_heads(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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


def test_transformers_reads_learned_positions_and_nothing_else(data: Path, tmp_path: Path) -> None:
    for name in ("learned", "m4"):
        _, path = trained(data, tmp_path / name, "--pos-enc", name)
        assert main(["export-hf", str(path), "--output", str(tmp_path / f"{name}-out")]) == 0
    given = tokens_of(data)
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "learned-out").eval()
    close(logits(theirs, given), logits(fairseq_posenc.load(tmp_path / "learned-out"), given))
    with pytest.raises(ValueError, match="fairseq_posenc"):
        transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "m4-out")


def test_stock_roberta_is_read(data: Path, tmp_path: Path) -> None:
    """Into any encoding, and as it is."""
    model, path = trained(data, tmp_path / "save", model=masked_lm.STOCK, task=masked_lm.STOCK_TASK)
    given = tokens_of(data)
    close(logits(fairseq_posenc.load(path), given), fairseq_logits(model, given))
    folder = imported(path, tmp_path / "out", "--pos-enc", "learned+m4")
    report = json.loads((folder / "report.json").read_text("utf-8"))
    assert "encoder.pos.learned.weight" in report["copied"]
    assert list(report["made"]) == ["encoder.pos.m4.weight"]


def test_names_of_2019_are_read() -> None:
    q, k, v = (torch.full((2, 2), float(i)) for i in range(3))
    old = {
        "decoder.sentence_encoder.layers.0.self_attn.in_proj_weight": torch.cat([q, k, v]),
        "decoder.sentence_encoder.emb_layer_norm.weight": torch.ones(2),
        "decoder.lm_head.bias": torch.zeros(3),
        "classification_heads.x.bias": torch.zeros(1),
    }
    found = from_fairseq(old)
    assert set(found.tensors) == {
        *(f"encoder.layers.0.self_attn.{x}_proj.weight" for x in "qkv"),
        "encoder.layernorm_embedding.weight",
        "lm_head.bias",
    }
    assert (found.tensors["encoder.layers.0.self_attn.k_proj.weight"] == 1).all()
    assert found.unused == ["classification_heads.x.bias"]


HIDDEN = """
import sys
for name in ("fairseq", "fairseq_cli", "transformers", "omegaconf", "hydra"):
    sys.modules[name] = None  # not installed
import torch, fairseq_posenc
model = fairseq_posenc.load(sys.argv[1])
given = torch.load(sys.argv[2], weights_only=True)
with torch.no_grad():
    torch.save(model(**given), sys.argv[3])
assert not any(name.split(".")[0] == "fairseq" and module for name, module in sys.modules.items())
"""


def test_no_fairseq_is_needed(data: Path, tmp_path: Path) -> None:
    model, path = trained(data, tmp_path / "save", "--pos-enc", "shaw")
    assert main(["export-hf", str(path), "--output", str(tmp_path / "out")]) == 0
    given = tokens_of(data)
    torch.save(given, tmp_path / "given.pt")
    words = [sys.executable, "-c", HIDDEN, tmp_path / "out", tmp_path / "given.pt", tmp_path / "found.pt"]
    subprocess.run([str(word) for word in words], check=True, env=support.environment(package=True), timeout=120)
    found = torch.load(tmp_path / "found.pt", weights_only=True)[given["attention_mask"].bool()]
    close(found, fairseq_logits(model, given))


@pytest.mark.parametrize("name", ["learned", "m4", "m3", "tupe"])
def test_the_encoder_compiles(name: str) -> None:
    from fairseq_posenc.hub import MaskedLM, ModelConfig

    model = MaskedLM(ModelConfig(2, 16, 32, 2, LENGTH, WORDS, pos_enc=name)).eval()
    torch._dynamo.reset()
    step = torch.compile(model.encoder, fullgraph=True, backend="aot_eager")
    given = batch("roberta")
    where = model.positions(**given).prepared()
    x = model.embed_tokens(given["input_ids"])
    with torch.no_grad():
        close(step(x, where)[0], model.encoder(x, where)[0])


# -- what is refused ----------------------------------------------------------------------------------------


def test_odd_vocabularies_become_dictionaries(tmp_path: Path) -> None:
    """A piece that is there twice, and pieces written as fairseq's special symbols."""
    folder = saved(made("bert"), tmp_path / "hf")
    words = [*BERT_WORDS[:-4], "<mask>", "<s>", "twice", "twice"]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", "utf-8")
    out = imported(folder, tmp_path / "out", "--pos-enc", "learned")
    assert in_fairseq(out).encoder.dictionary.symbols[-2:] == [f"madeupword{WORDS - 2}", "<mask>"]
    found = fairseq_posenc.load(out / "checkpoint.pt")
    assert found.config.mask == WORDS - 1


def test_a_model_without_its_head_is_not_loaded_but_imported(tmp_path: Path) -> None:
    folder = saved(made("bert"), tmp_path / "hf")
    made("bert").bert.save_pretrained(folder)
    with pytest.raises(CheckpointError, match="no whole masked language model"):
        fairseq_posenc.load(folder)
    report = json.loads((imported(folder, tmp_path / "out", "--pos-enc", "m4") / "report.json").read_text("utf-8"))
    assert "lm_head.dense.weight" in report["made"]


def fewer_layers(folder: Path) -> None:
    settings = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps({**settings, "num_hidden_layers": 1}), "utf-8")


def more_layers(folder: Path) -> None:
    settings = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps({**settings, "num_hidden_layers": 3}), "utf-8")


def unsized(folder: Path) -> None:
    settings = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps({**settings, "hidden_size": None}), "utf-8")


def no_cls(folder: Path) -> None:
    (folder / "vocab.txt").write_text("\n".join(f"w{i}" for i in range(WORDS)), "utf-8")


def too_many_words(folder: Path) -> None:
    (folder / "vocab.txt").write_text("\n".join([*BERT_WORDS, "more"]), "utf-8")


def no_index(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model.safetensors.index.json")


def truncate(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:200])


def narrow(folder: Path) -> None:
    settings = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps({**settings, "intermediate_size": 7}), "utf-8")


def rename(folder: Path) -> None:
    settings = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps({**settings, "model_type": "gpt2"}), "utf-8")


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"weight": torch.nn.Linear(1, 1)}, folder / "pytorch_model.bin")


def climbing(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"x": "../secret.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (truncate, "model.safetensors cannot be read"),
        (narrow, r"fc1.weight is \[96, 48\] in the source"),
        (rename, "holds a gpt2: bert and roberta"),
        (pickled, "refused, because it holds"),
        (climbing, "a file outside of the folder"),
        (fewer_layers, r"encoder.layers.1.\S+, for which its settings have no place"),
        (more_layers, r"no encoder.layers.2.\S+, which its settings ask for"),
        (unsized, "no number hidden_size"),
        (no_cls, r"has no \[CLS\]: it is another model's"),
        (too_many_words, "vocab_size 40, but 41 pieces"),
        (no_index, "is no index of weights"),
        (lambda folder: (folder / "config.json").unlink(), "no config.json"),
        (lambda folder: (folder / "config.json").write_text("{"), "is no JSON"),
        (lambda folder: (folder / "model.safetensors").unlink(), "has no weights"),
    ],
)
def test_bad_folders_are_named_and_nothing_is_left(
    spoil: Callable[[Path], Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = saved(made("bert"), tmp_path / "hf")
    spoil(folder)
    assert main(["import-hf", str(folder), "--pos-enc", "m4", "--output", str(tmp_path / "out")]) == 1
    assert re.search(message, capsys.readouterr().err)
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--pos-enc", "m5"], "unknown position encoding"),
        (["--pos-enc", "m4", "--pos-enc-args", "klip=3"], "no option klip"),
        (["--pos-enc", "xpos"], "xpos"),
    ],
)
def test_bad_options_leave_nothing(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = saved(made("bert"), tmp_path / "hf")
    assert main(["import-hf", str(folder), "--output", str(tmp_path / "out"), *words]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_is_there_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = saved(made("bert"), tmp_path / "hf")
    assert main(["import-hf", str(folder), "--pos-enc", "m4", "--output", str(folder)]) == 1
    assert "is there already" in capsys.readouterr().err


def test_an_interrupted_export_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> None:
        with folders.whole_folder(tmp_path / "out") as folder:
            (folder / "half").write_text("x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not list(tmp_path.iterdir())


def test_another_model_s_checkpoint_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = support.write_corpus(tmp_path / "data-bin")
    support.train(data, "--max-update", 1, "--save-dir", tmp_path / "save")
    path = str(tmp_path / "save" / "checkpoint_last.pt")
    assert main(["export-hf", path, "--output", str(tmp_path / "out")]) == 1
    assert "BERT and RoBERTa" in capsys.readouterr().err
