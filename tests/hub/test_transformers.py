"""Test exported language models in transformers and lm-evaluation-harness, which need no fairseq."""

from __future__ import annotations

import ast
import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from integration import lm, support
from integration.cases import DECODERS
from support_exchange import cases, close, exported, in_transformers
from torch import Tensor

import fairseq_posenc
from fairseq_posenc.encodings import names
from fairseq_posenc.hub.code import code
from fairseq_posenc.hub.pretrained import read

PAD, EOS = 1, 2
#: Columns; no longer than the tables of the models.
LENGTH = lm.SEGMENT


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lm.write_corpus(tmp_path_factory.mktemp("lm") / "data-bin")


def tokens() -> Tensor:
    """Return two texts, [2, LENGTH]; the second one has several lines."""
    random = torch.Generator().manual_seed(1)
    ids = torch.randint(4, 4 + lm.WORDS, (2, LENGTH), generator=random)
    ids[:, 0], ids[1, 3], ids[1, 4] = EOS, EOS, EOS
    return ids


@torch.no_grad()
def theirs(model: Any, ids: Tensor) -> Tensor:
    """Return the log-probabilities of a fairseq model."""
    return model.get_normalized_probs(model(ids), log_probs=True)


@torch.no_grad()
def ours(model: Any, ids: Tensor, **more: Any) -> Tensor:
    """Return the log-probabilities of an exported model, in transformers or in plain torch."""
    output = model(ids, **more)
    return getattr(output, "logits", output).log_softmax(-1)


@pytest.mark.parametrize(("flags", "model"), cases(lm, DECODERS))
def test_a_language_model_computes_the_same_in_transformers(flags: str, model: str, data: Path, tmp_path: Path) -> None:
    """Compare whole texts, padding on the left, and steps with a cache whose samples change places halfway."""
    source, folder = exported(lm, data, tmp_path, *flags.split(), model=model)
    other, ids = in_transformers(folder), tokens()
    assert other.model.config.first == (0 if "--add-bos-token" in flags else EOS)
    for each in (other, fairseq_posenc.load(folder), fairseq_posenc.load(tmp_path / "checkpoint.pt")):
        close(ours(each, ids), theirs(source, ids))
    padded, mask = ids.clone(), torch.ones_like(ids)
    padded[1, :3], mask[1, :3] = PAD, 0
    whole, half = ours(other, padded, attention_mask=mask), LENGTH // 2
    close(whole[1, 3:], theirs(source, ids[1:, 3:])[0])
    with torch.no_grad():
        cache = other(padded[:, :half], attention_mask=mask[:, :half], use_cache=True).past_key_values
        cache.reorder_cache(torch.tensor([1, 0]))
        for columns in (slice(half, half + 1), slice(half + 1, half + 2), slice(half + 2, LENGTH)):
            steps, seen = padded.flip(0)[:, columns], mask.flip(0)[:, : columns.stop]
            close(ours(other, steps, attention_mask=seen, past_key_values=cache), whole.flip(0)[:, columns])
    assert cache.get_seq_length() == LENGTH


def test_generation_with_the_cache_equals_generation_without(data: Path, tmp_path: Path) -> None:
    _, folder = exported(lm, data, tmp_path, "--pos-enc", "rope+t5", "--decoder-normalize-before")
    model = in_transformers(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(["w3 w4 w5", "w7"], return_tensors="pt", padding=True)
    assert inputs["input_ids"].tolist() == [[EOS, 7, 8, 9], [PAD, PAD, EOS, 11]]
    for how in ({}, {"num_beams": 3}, {"do_sample": True, "top_k": 5}):
        results = []
        for cached in (True, False):
            torch.manual_seed(0)
            results.append(model.generate(**inputs, **how, max_new_tokens=12, eos_token_id=[99], use_cache=cached))
        assert results[0].tolist() == results[1].tolist(), how
    assert model.generation_config.suppress_tokens == [0, PAD]
    with pytest.raises(ValueError, match="not supported with stateful models"):
        model.generate(input_ids=inputs["input_ids"][:1], max_new_tokens=2, prompt_lookup_num_tokens=2)
    alone = model.generate(**tokenizer(["w7"], return_tensors="pt"), max_new_tokens=12, eos_token_id=[99])
    together = model.generate(**inputs, max_new_tokens=12, eos_token_id=[99])
    assert alone[0].tolist() == together[1, 2:].tolist()
    assert tokenizer.decode(alone[0, 1:2]) == "w7"


def test_a_language_model_learns_in_transformers(data: Path, tmp_path: Path) -> None:
    _, folder = exported(lm, data, tmp_path, "--pos-enc", "shaw")
    model, ids = in_transformers(folder).train(), tokens()
    output = model(ids, labels=ids)
    expected = torch.nn.functional.cross_entropy(output.logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    torch.testing.assert_close(output.loss, expected)
    output.loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    model.save_pretrained(tmp_path / "again" / "model")
    close(ours(in_transformers(tmp_path / "again" / "model"), ids), ours(model.eval(), ids))
    assert read(tmp_path / "again" / "model", causal=True).tensors.keys() == read(folder, causal=True).tensors.keys()


def test_a_folder_of_an_earlier_version_is_loaded(data: Path, tmp_path: Path) -> None:
    """Earlier versions had settings of their own for language models, and another model_type."""
    _, folder = exported(lm, data, tmp_path, "--pos-enc", "rope")
    whole, ids = fairseq_posenc.load(folder), tokens()
    settings = json.loads((folder / "config.json").read_text("utf-8"))
    for name in ("causal", "layer_norm_eps", "mask"):
        del settings["fairseq_posenc"][name]
    (folder / "config.json").write_text(json.dumps(settings | {"model_type": "fairseq_posenc_lm"}), "utf-8")
    (folder / "SHA256SUMS").unlink()
    close(ours(fairseq_posenc.load(folder), ids), ours(whole, ids))


def test_what_the_class_for_transformers_lacks_is_refused(data: Path, tmp_path: Path) -> None:
    _, folder = exported(lm, data, tmp_path, "--pos-enc", "learned")
    model, ids = in_transformers(folder), tokens()
    with pytest.raises(ValueError, match="output_attentions=True: this model returns logits only"):
        model(ids, output_attentions=True)
    foreign = transformers.DynamicCache()
    foreign.update(torch.zeros(2, 2, 1, 8), torch.zeros(2, 2, 1, 8), 0)
    with pytest.raises(ValueError, match="DynamicCache, but this model needs the cache that it returned itself"):
        model(ids, past_key_values=foreign)
    with pytest.raises(ValueError, match="up to 8 positions, but there are 9"):
        model.generate(ids, max_new_tokens=3, eos_token_id=[99])


ALONE = """
import json, sys
sys.modules.update(dict.fromkeys("{missing}".split()))  # importing any of these raises ImportError
import torch, {package}
with torch.no_grad():
    output = {package}.{load}(torch.tensor([[2, 5, 6, 7, 8]]))
print(json.dumps(getattr(output, "logits", output).tolist()))
"""


@pytest.mark.parametrize(
    ("package", "load", "missing"),
    [
        ("fairseq_posenc", "load({folder!r})", "fairseq fairseq_cli transformers omegaconf hydra"),
        (
            "transformers",
            "AutoModelForCausalLM.from_pretrained({folder!r}, trust_remote_code=True)",
            "fairseq fairseq_posenc",
        ),
    ],
)
def test_an_exported_model_needs_few_packages(
    package: str, load: str, missing: str, data: Path, tmp_path: Path
) -> None:
    """The encoding has two members, one of them with another class for one of its forms."""
    _, folder = exported(lm, data, tmp_path, "--pos-enc", "learned+tupe")
    code = ALONE.format(package=package, load=load.format(folder=str(folder)), missing=missing)
    alone = support.environment(package=package == "fairseq_posenc", HF_MODULES_CACHE=str(tmp_path / "modules"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=alone, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with torch.no_grad():
        close(torch.tensor(json.loads(done.stdout)), fairseq_posenc.load(folder)(torch.tensor([[2, 5, 6, 7, 8]])))


@functools.cache
def imports(text: str) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]


def test_the_code_of_every_encoding_is_what_it_needs() -> None:
    """It imports no file of the package that is not among the copies, and no other encoding is copied."""
    assert "encodings_rope.py" not in code("tupe+learned")
    for encoding in names():
        files = code(encoding)
        for name, text in files.items():
            for node in imports(text):
                if isinstance(node, ast.ImportFrom) and node.level:
                    assert node.level == 1
                    assert node.module is None or f"{node.module}.py" in files, (encoding, name, ast.unparse(node))
                else:
                    assert "fairseq" not in ast.unparse(node), name


# -- lm-evaluation-harness, which installs the newest transformers that it allows: so that one is tested, too ----

HARNESS = ["lm_eval[hf]==0.4.13", f"torch=={torch.__version__.partition('+')[0]}"]
#: Name of the environment variable with the Python of an environment that has the harness already.
PYTHON = "POSENC_LM_EVAL_PYTHON"
TEXTS = [("w1 w2 w3", " w4"), ("w1 w2 w3", " w9 w2"), ("w8", " w5 w6"), ("w5 w6 w5", " w20")]
SCORE = """
import json, sys
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
model = HFLM(sys.argv[1], trust_remote_code=True, dtype="float32", add_bos_token=True, device="cpu", batch_size=2)
texts = [Instance("loglikelihood", {}, tuple(text), i) for i, text in enumerate(json.loads(sys.argv[2]))]
print(json.dumps([score for score, _ in model.loglikelihood(texts)]))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the Python of an environment with the harness; skip the tests if its packages cannot be had."""
    if PYTHON in os.environ:
        return os.environ[PYTHON]
    folder = tmp_path_factory.mktemp("lm_eval") / "env"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    installed = subprocess.run(
        [folder / "bin" / "pip", "install", "-q", *HARNESS], capture_output=True, text=True, check=False
    )
    if installed.returncode:
        pytest.skip(f"pip cannot install lm_eval: {installed.stderr.strip().splitlines()[-1]}")
    return str(folder / "bin" / "python")


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["rope", "learned+m4m"])
def test_the_harness_gets_the_likelihoods_of_the_model(name: str, python: str, tmp_path: Path) -> None:
    _, folder = exported(lm, lm.write_corpus(tmp_path / "data-bin"), tmp_path, "--pos-enc", name)
    offline = {"HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    environment = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", **offline}
    command = [python, "-c", SCORE, folder, json.dumps(TEXTS)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    model, expected = fairseq_posenc.load(folder), []
    for context, choice in TEXTS:
        ids = torch.tensor([2, *(4 + int(word.removeprefix("w")) for word in f"{context}{choice}".split())])
        with torch.no_grad():
            scores = model(ids[None]).log_softmax(-1)[0, :-1].gather(1, ids[1:, None])[:, 0]
        expected.append(float(scores[-len(choice.split()) :].sum()))
    assert json.loads(done.stdout.splitlines()[-1]) == pytest.approx(expected, abs=1e-4)
