"""Test the recipe for question generation: its scores and its examples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import prepare_questions
import pytest
from support_recipes import called

from fairseq_posenc import metrics
from recipes.lib import runs
from recipes.lib.invented import questions as builtin
from recipes.question_generation import score

PIECES = "--bad repair --context sentence --length 64 --longest-answer 20 --limit 600 --limit-valid 60 --vocabulary 200"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepare the invented questions as the preset smoke does."""
    folder = tmp_path_factory.mktemp("questions")
    called(builtin, "--output", folder / "builtin", "--seed", 1)
    files = ["--corpus", str(folder / "builtin"), "--output", str(folder / "data")]
    assert prepare_questions.main([*files, *PIECES.split()]) == 0
    return folder / "data"


def items(data: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (data / "valid.surface.jsonl").read_text("utf-8").splitlines()]


def test_an_item_without_a_question_is_not_scored_as_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "generate-valid.txt"
    path.write_text("H-0\t-1\twho ?\nH-2\t-1\twhen ?\n")
    with pytest.raises(SystemExit, match=r"questions of 1 items are missing \(the first are 1"):
        score.generated(path)


def test_a_file_of_questions_is_scored(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    perfect, few = tmp_path / "perfect.txt", tmp_path / "few.txt"
    perfect.write_text("".join(f"{item['question']}\n" for item in items(data)))
    called(score, "--data", data, "--hypotheses", perfect)
    assert json.loads(capsys.readouterr().out)["ROUGE-L"] == 100
    few.write_text("what ?\n")
    with pytest.raises(SystemExit, match="1 questions, but the split has 60 items"):
        called(score, "--data", data, "--hypotheses", few)
    with pytest.raises(SystemExit, match=r"test\.surface\.jsonl: this file does not exist"):
        called(score, "--data", data, "--split", "test", "--hypotheses", few)


def run_folder(folder: Path, data: Path) -> dict[str, list[str]]:
    """Write what the steps before the scores have written for two models, and return their questions.

    The first model copies a name; the second repeats one question. Of two validations, the first is better.
    """
    unknown = items(data)[0]["unknown"][0]
    pieces = {"xl.s1": [f"who is {unknown} ?", *["when was the mill built ?"] * 59], "none.xl.s1": ["what ?"] * 60}
    (folder / "logs").mkdir()
    (folder / "models.tsv").write_text("xl.s1\txl\t1\t\nnone.xl.s1\txl\t1\tnone\n")
    log = "".join(
        f'x | valid | {{"valid_num_updates": "{n}", "valid_rouge_l": "{rouge}", "valid_copied": "{copied}"}}\n'
        for n, rouge, copied in ((20, 0.25, 0.4), (40, 0.21, 0.7))
    )
    for name, lines in pieces.items():
        generated = folder / "generated" / name / "generate-valid.txt"
        generated.parent.mkdir(parents=True)
        # fairseq-generate writes the items in another order
        text = (f"S-{n}\tx\nH-{n}\t-0.5\t{line}\nD-{n}\t-0.5\tx\n" for n, line in reversed([*enumerate(lines)]))
        generated.write_text("".join(text))
        (folder / "logs" / f"{name}.train.log").write_text(log)
    return {name: [line.replace(" ?", "?") for line in lines] for name, lines in pieces.items()}


def test_a_run_has_scores_questions_baselines_and_examples(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = run_folder(tmp_path, data)
    monkeypatch.setattr(score, "updates", lambda path: {"checkpoint_best.pt": 20}[path.name])
    called(score, "--run", tmp_path, "--data", data)
    copying, constant = (model.scores for model in runs.models(tmp_path))
    references, sources = ([item[name] for item in items(data)] for name in ("references", "source"))
    expected = metrics.score(questions["xl.s1"], references, sources)
    assert copying["ROUGE-L"] == pytest.approx(100 * expected.rouge_l)
    assert (copying["BLEU-4"], copying["chrF"]) == pytest.approx((expected.bleu, expected.chrf))
    assert 0 < copying["unknown words copied"] < 1
    assert constant["unknown words copied"] == 0
    assert [copying[f"{when} greedy ROUGE-L"] for when in ("first", "last")] == [25, 21]
    assert copying["copied"] == 0.4  # that of the checkpoint that is scored
    assert (tmp_path / "questions" / "xl.s1.txt").read_text().splitlines() == questions["xl.s1"]
    gallery = (tmp_path / "gallery.md").read_text()
    assert gallery.count("- answer: ") == gallery.count("- xl, none: what?") == 20
    first, best = baselines = json.loads((tmp_path / "baselines.json").read_text())
    assert first == "first 10 words of the sentence"
    assert best.startswith("always '")
    assert baselines[best]["distinct"] < 5


def test_examples_stay_on_a_line_and_have_no_tags() -> None:
    assert score.plain(" <s>\n a") == "&lt;s> a"
