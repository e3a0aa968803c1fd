"""Test the task `posenc_answers`: its batches, exact match against real decoding, refusals."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
import torch
from fairseq import tasks
from integration import support

from fairseq_posenc.compat.checkpoints import CheckpointError
from fairseq_posenc.metrics.exact_match import exact_matches
from fairseq_posenc.tasks.answers import AnswersTask

SIZES = {
    "decoder": "--arch posenc_transformer_lm_tiny --tokens-per-sample 32",
    "encoder": "--arch posenc_roberta_tiny --encoder-layers 1 --encoder-embed-dim 16 --encoder-ffn-embed-dim 16",
    "encoder-decoder": "--arch posenc_transformer_tiny --encoder-embed-dim 16 --share-all-embeddings",
}


def folder(path: Path, kind: str = "decoder", lines: str = "2\ta b = a b\t_ _ a b </s>\n1\tb = b\t_ b </s>\n") -> Path:
    path.mkdir(exist_ok=True)
    (path / "dict.txt").write_text("= 1\na 1\nb 1\n")
    (path / "answers.json").write_text(json.dumps({"kind": kind, "longest_input": 8, "longest_output": 8}))
    for split in ("train", "valid"):
        (path / f"{split}.tsv").write_text(lines)
    return path


def task(path: Path) -> AnswersTask:
    names = argparse.Namespace(task="posenc_answers", data=str(path), train_subset="train", tokens_per_sample=32)
    made = tasks.setup_task(names)
    assert isinstance(made, AnswersTask)
    return made


def batch(path: Path) -> dict[str, torch.Tensor]:
    loaded = task(path)
    loaded.load_dataset("valid")
    dataset = loaded.dataset("valid")
    sample = dataset.collater([dataset[0], dataset[1]])
    return {"target": sample["target"], "ntokens": sample["ntokens"], **sample["net_input"]}


def test_a_batch_of_a_decoder(tmp_path: Path) -> None:
    bos, pad, eos, equals, a, b = 0, 1, 2, 4, 5, 6
    found = batch(folder(tmp_path))
    assert found["src_tokens"].tolist() == [[bos, a, b, equals, a, b], [bos, b, equals, b, pad, pad]]
    assert found["target"].tolist() == [[pad, pad, pad, a, b, eos], [pad, pad, b, eos, pad, pad]]
    assert found["ntokens"] == 5
    assert "prev_output_tokens" not in found


def test_a_batch_of_an_encoder_decoder(tmp_path: Path) -> None:
    bos, pad, eos, a, b = 0, 1, 2, 5, 6
    found = batch(folder(tmp_path, "encoder-decoder", "1\ta\tb a\n1\ta b\tb\n"))
    assert found["src_tokens"].tolist() == [[bos, a, pad], [bos, a, b]]
    assert found["target"].tolist() == [[b, a, eos], [b, eos, pad]]
    assert found["prev_output_tokens"].tolist() == [[eos, b, a], [eos, b, pad]]


def test_exact_matches_ignore_padding_and_need_every_other_token() -> None:
    target = torch.tensor([[1, 3, 4], [1, 3, 4], [1, 1, 1]])
    logits = torch.nn.functional.one_hot(torch.tensor([[0, 3, 4], [0, 3, 3], [2, 2, 2]]), 5).float()
    assert exact_matches(logits, target, pad=1).tolist() == [True, False, True]


def test_exact_matches_are_those_of_greedy_decoding(tmp_path: Path) -> None:
    """A short training makes some answers right and some wrong; each is decoded greedily, token by token."""
    strings = [f"{x} {y}" for x in "ab" for y in "ab"] + ["a", "b"]
    lines = [f"1\t{text} = {text}\t{'_ ' * len(text.split())}{text} </s>" for text in strings]
    data = folder(tmp_path / "data", lines="".join(f"{line}\n" for line in lines))
    flags = f"{data} --user-dir fairseq_posenc --task posenc_answers --criterion cross_entropy {SIZES['decoder']}"
    flags += " --pos-enc rope --optimizer adam --lr 0.01 --batch-size 3 --max-update 60 --cpu --num-workers 0 --seed 2"
    flags += " --data-buffer-size 0 --required-batch-size-multiple 1 --no-save --log-format none --dropout 0"
    run = support.trained(flags.split())
    model, loaded = run.model.eval(), run.task
    loaded.load_dataset("valid")
    dataset = loaded.dataset("valid")
    sample = dataset.collater([dataset[number] for number in range(len(dataset))])
    exact = exact_matches(model(**sample["net_input"])[0], sample["target"], loaded.dictionary.pad()).tolist()
    for example, right in zip(dataset.examples, exact, strict=True):
        wanted = example.output[example.output.ne(loaded.dictionary.pad())]
        tokens = example.input[: len(example.input) - len(wanted) + 1]
        for _ in wanted:
            tokens = torch.cat([tokens, model(tokens[None])[0][0, -1].argmax()[None]])
        assert tokens[-len(wanted) :].equal(wanted) == right
    assert 0 < sum(exact) < len(exact)


@pytest.mark.parametrize("kind", SIZES)
def test_random_positions_are_spread_over_the_lengths_of_the_examples(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With the default lengths, a decoder would use neighbouring positions in evaluation, but never in training."""
    flags = f"{folder(tmp_path, kind)} --user-dir fairseq_posenc --task posenc_answers {SIZES[kind]} --cpu"
    flags += " --optimizer adam --criterion cross_entropy --pos-enc rope"
    expected = {"decoder": 8, "encoder": 8, "encoder-decoder": (8, 8)}[kind]
    for random in ([], ["--pos-enc-random", "9"]):
        config = support.parse([*flags.split(), *random])
        with caplog.at_level("INFO", logger="fairseq_posenc.tasks.answers"):
            model = tasks.setup_task(config.task).build_model(config.model)
        assert (model.max_positions() == expected) is bool(random)
        assert ("_positions is 8, the length of the longest example" in caplog.text) is bool(random)


def test_another_kind_of_model_is_refused(tmp_path: Path) -> None:
    flags = f"{folder(tmp_path)} --user-dir fairseq_posenc --task posenc_answers {SIZES['encoder-decoder']} --cpu"
    config = support.parse([*flags.split(), "--optimizer", "adam", "--criterion", "cross_entropy"])
    with pytest.raises(ValueError, match=r"examples for the decoder, not the encoder-decoder.*posenc_transformer_lm"):
        tasks.setup_task(config.task).build_model(config.model)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1\ta = c\t_ c </s>", "the dictionary does not contain 'c'"),
        ("1\ta = a\t_ a", "the input has 3 tokens, but the output has 2"),
    ],
)
def test_a_wrong_line_is_named(line: str, message: str, tmp_path: Path) -> None:
    folder(tmp_path, lines=f"1\tb = b\t_ b </s>\n{line}\n")
    with pytest.raises(CheckpointError, match=rf"valid\.tsv:2: {message}"):
        task(tmp_path).load_dataset("valid")
