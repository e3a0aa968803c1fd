"""Test question generation with fairseq's commands: scores of texts, typed lines, lengths, several models."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import fairseq_cli.generate
import pytest
import torch

pytest.importorskip("fairseq")

import support_questions as q
from fairseq import options
from fairseq.dataclass.configs import GenerationConfig
from integration import support

from fairseq_posenc import metrics
from fairseq_posenc.generation import rouge_scorer

REFUSED = tomllib.loads(Path(__file__).with_name("refused.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write questions; the first two items of the test set have the same source."""
    folder = q.write_questions(tmp_path_factory.mktemp("questions") / "prepared")
    path = folder / "test.surface.jsonl"
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    both = [text for line in lines[:2] for text in line["references"]]
    for number, line in enumerate(lines):
        line |= {"source": 0, "references": both} if number < 2 else {"source": number}
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    return folder


@pytest.fixture(scope="module")
def both(data: Path) -> tuple[Any, Any]:
    return q.moved(data)


# -- scores -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    q.trained(data, "--max-update", 2, "--save-dir", folder)
    return folder / "checkpoint_last.pt"


@pytest.mark.parametrize("variant", rouge_scorer.VARIANTS)
def test_generate_ends_with_rouge_l_of_sources(variant: str, data: Path, saved: Path) -> None:
    words = [data, "--user-dir", support.PLUGIN, "--path", saved, "--cpu", *q.TASK, "--beam", 2, "--max-len-b", 6]
    words += ["--batch-size", 4, "--scoring", "rouge_l", "--rouge-variant", variant, "--nbest", 2]
    cfg = support.parse(words, options.get_generation_parser, arch="wav2vec2")
    text, scorer = support.printed(fairseq_cli.generate.main, cfg)
    best: dict[int, str] = {}
    for number, line in re.findall(r"^D-(\d+)\t\S+\t(.*)$", text, re.MULTILINE):
        best.setdefault(int(number), line)
    lines = [json.loads(line) for line in (data / "test.surface.jsonl").read_text("utf-8").splitlines()]
    values = [metrics.rouge_l(best[n], line["references"], variant=variant) for n, line in enumerate(lines)]
    expected = ((values[0] + values[1]) / 2 + sum(values[2:])) / (len(values) - 1)
    assert scorer.score() == pytest.approx(expected)
    summary = f"ROUGE-L = {100 * expected:.2f} ({variant}, words, 10 sources with all of their references)"
    assert text.splitlines()[-1] == f"Generate test with beam=2: {summary}"


def test_texts_of_other_tasks_have_a_reference_each_and_it_is_told(caplog: pytest.LogCaptureFixture) -> None:
    scorer = rouge_scorer.RougeScorer(rouge_scorer.RougeConfig(rouge_units="characters"))
    assert scorer.score() == 0.0
    for reference, text in (("谁是王？", "王是谁？"), ("谁", "谁")):
        scorer.add_string(reference, text)
    assert scorer.score() == pytest.approx((2 / 4 + 1) / 2)
    assert scorer.result_string() == "ROUGE-L = 75.00 (f1, characters, 2 texts with one reference each)"
    assert sum("which items share a source" in record.message for record in caplog.records) == 1


# -- lines that are typed ---------------------------------------------------------------------------------


@pytest.mark.parametrize("case", REFUSED["line"], ids=lambda case: case["message"])
def test_lines_of_another_form_are_refused_with_their_number(case: dict[str, Any], data: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(data, tmp_path / "prepared")
    if "answers" in case:
        record = {"pieces": "spaces", "cased": True, "answers": case["answers"]}
        (folder / "questions.json").write_text(json.dumps(record), "utf-8")
    task = fresh(folder)
    encode = task.build_bpe(None).encode
    good = "a </s> b Zanzibar" if case.get("answers", True) else "a b"
    for _ in range(2):  # buffers of fairseq-interactive
        samples, lengths = task.get_interactive_tokens_and_lengths([good, good], encode)
    assert [len(tokens) for tokens in samples] == lengths
    with pytest.raises(ValueError, match=f"line 6 of the input: .*{case['message']}"):
        task.get_interactive_tokens_and_lengths([good, case["text"]], encode)


def fresh(folder: Path, *more: Any) -> Any:
    """Return a task without a model."""
    from fairseq import tasks

    return tasks.setup_task(support.parse(q.words(folder, *more)).task)


# -- lengths ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", REFUSED["length"], ids=lambda case: case["split"])
def test_items_that_are_too_long_are_counted_and_refused(
    case: dict[str, Any], data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With a flag of fairseq that leaves them out, a message says so."""
    with pytest.raises(ValueError, match=f"prepared, {case['split']}: {case['message']}"):
        fresh(data, *case["flags"]).load_dataset(case["split"])
    fresh(data, *case["flags"], "--skip-invalid-size-inputs-valid-test").load_dataset("test")
    assert "prepared, test: fairseq leaves out items that are too long." in caplog.text


# -- several models ---------------------------------------------------------------------------------------


@torch.no_grad()
def test_an_ensemble_averages_probabilities(both: tuple[Any, Any], data: Path) -> None:
    """The average includes the probabilities of copied words."""
    models, task = [both[0], support.move(q.built(data)[0], seed=2).eval()], both[1]
    sample = q.batch(task)
    inputs = sample["net_input"]
    start = inputs["prev_output_tokens"][:, :1]
    singles = [
        model.get_normalized_probs(model(**{**inputs, "prev_output_tokens": start}), False)[:, 0] for model in models
    ]
    assert not torch.allclose(*singles, atol=1e-3)
    generator = task.build_generator(models, GenerationConfig(beam=2, max_len_b=6))
    encoded = [model.encoder(inputs["src_tokens"], None, inputs["src_segments"]) for model in models]
    log_p, _ = generator.model.forward_decoder(start, encoded, [{}, {}])
    assert log_p.shape[-1] == q.SIZE + 2
    torch.testing.assert_close(log_p.exp(), sum(singles) / 2, rtol=1e-5, atol=1e-7)
    assert len(task.inference_step(generator, models, sample)) == q.SIZES["test"]


def test_special_symbols_of_a_line_are_words(data: Path, tmp_path: Path) -> None:
    """Otherwise `<pad>` would not be a token, and `<unk>` could not be copied."""
    shutil.copytree(data, tmp_path / "prepared")
    task = fresh(tmp_path / "prepared")
    line = "a </s> a <pad> <s> <unk> <mask>"
    (tokens,), _ = task.get_interactive_tokens_and_lengths([line], task.build_bpe(None).encode)
    assert tokens[4:8].min() > len(task.source_dictionary)
    assert tokens[1] == tokens[3] < len(task.source_dictionary)


def test_models_that_copy_and_models_that_do_not_are_no_ensemble(both: tuple[Any, Any], data: Path) -> None:
    model, task = both
    other = q.built(data, "--copy-mechanism", "none")[0]
    generator = task.build_generator([model, other], GenerationConfig(beam=2))
    with pytest.raises(ValueError, match="An ensemble cannot mix models that copy with models of --copy-mechanism"):
        task.inference_step(generator, [model, other], q.batch(task))
