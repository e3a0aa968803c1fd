"""Provide random Hugging Face models, as folders and as `import-hf` converts them."""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from fairseq import tasks
from integration import support
from integration.cases import in_turn
from omegaconf import OmegaConf
from torch import Tensor

from fairseq_posenc.__main__ import main

LENGTH, WORDS = 20, 40
HUB = Path(__file__).parent / "hub"
#: Flags of models by the module and the model to which they belong, models that must compute the same after they are
#: converted, and what is refused.
FLAGS, MODELS, REFUSED = (
    tomllib.loads((HUB / f"{name}.toml").read_text("utf-8")) for name in ("flags", "models", "refused")
)
#: Folder to which transformers copies the code of exported models; the user's own is left alone.
COPIED = tempfile.TemporaryDirectory()
BERT_WORDS = ["[PAD]", "a", "[UNK]", "[CLS]", "##b", "[SEP]", "[MASK]", *(f"w{i}" for i in range(WORDS - 7))]


def random_model(kind: str, size: str = "wide", **more: Any) -> Any:
    """Return a Hugging Face model with random weights, none of which has its initial value."""
    torch.manual_seed(3)
    sizes = {"vocab_size": WORDS, "max_position_embeddings": LENGTH, **MODELS["sizes"][size], **more}
    if kind == "bert":
        model = transformers.BertForMaskedLM(transformers.BertConfig(**sizes))
    elif kind == "gpt2":
        ends = {"bos_token_id": WORDS - 1, "eos_token_id": WORDS - 1}
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**{**ends, **sizes}))
    else:
        own = {"max_position_embeddings": LENGTH + 2, "type_vocab_size": 1, "pad_token_id": 1, "layer_norm_eps": 1e-5}
        model = transformers.RobertaForMaskedLM(transformers.RobertaConfig(**{**sizes, **own, **more}))
    return support.move(model).eval()


def saved(model: Any, folder: Path, *, safe: bool = True, **more: Any) -> Path:
    model.save_pretrained(folder, safe_serialization=safe, **more)
    if model.config.model_type == "bert":
        (folder / "vocab.txt").write_text("\n".join(BERT_WORDS) + "\n", "utf-8")
    return folder


def batch(kind: str, *, left: bool = False, words: int = WORDS, columns: int = 12) -> dict[str, Tensor]:
    """Return two sentences, one of them padded."""
    random = torch.Generator().manual_seed(1)
    ids = torch.randint(7, words - 1, (2, columns), generator=random)
    bos, eos, pad = (3, 5, 0) if kind == "bert" else (0, 2, 1)
    mask = torch.ones_like(ids)
    ids[:, 0], ids[0, -1], ids[1, 7] = bos, eos, eos
    ids[1, 8:], mask[1, 8:] = pad, 0
    if left:
        ids[1], mask[1] = ids[1].roll(4), mask[1].roll(4)
    return {"input_ids": ids, "attention_mask": mask}


@torch.no_grad()
def logits(model: Any, inputs: dict[str, Tensor]) -> Tensor:
    """Return the logits of the tokens, without those of padding."""
    output = model(**inputs)
    return getattr(output, "logits", output)[inputs["attention_mask"].bool()]


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


def cases(corpus: Any, names: Iterable[str]) -> list[Any]:
    """Return flags and models for `exported`: one for each set of hooks of these encodings, and those of flags.toml."""
    encodings = [pytest.param(f"--pos-enc {p.id}", "TINY", marks=p.marks) for p in in_turn(names)]
    others = FLAGS[corpus.__name__.rpartition(".")[2]]
    return encodings + [(flags, model) for model, lines in others.items() for flags in lines]


def exported(corpus: Any, data: Path, folder: Path, *arguments: Any, model: str = "TINY") -> tuple[Any, Path]:
    """Return an untrained model of fairseq with random weights, and its exported folder.

    Args:
        corpus: The module of the tiny models, `integration.lm` or `integration.masked_lm`.
        model: Name of the flags of a model in this module; UNTIED are those of a model with its own output matrix.
    """
    untied = [word for word in corpus.TINY if word != "--share-decoder-input-output-embed"]
    parts = {"model": getattr(corpus, model, untied), "task": corpus.STOCK_TASK}
    cfg = support.parse(corpus.command_line(data, *arguments, **parts))
    task = tasks.setup_task(cfg.task)
    torch.manual_seed(5)
    built = support.move(task.build_model(cfg.model).eval())
    settings = OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)
    torch.save({"cfg": settings, "model": built.state_dict()}, folder / "checkpoint.pt")
    assert main(["export-hf", str(folder / "checkpoint.pt"), "--output", str(folder / "model")]) == 0
    return built, folder / "model"


def in_transformers(folder: Path, kind: str = "AutoModelForCausalLM") -> Any:
    """Load an exported model with its own code."""
    transformers.dynamic_module_utils.HF_MODULES_CACHE = COPIED.name
    return getattr(transformers, kind).from_pretrained(folder, trust_remote_code=True).eval()


def imported(source: Path, output: Path, *more: str) -> Path:
    assert main(["import-hf", str(source), "--output", str(output), *more]) == 0
    return output


def in_fairseq(folder: Path) -> Any:
    from fairseq import checkpoint_utils

    overrides = {"data": str(folder)}
    models, _, _ = checkpoint_utils.load_model_ensemble_and_task([str(folder / "checkpoint.pt")], overrides)
    return models[0].eval()
