"""Test the recipe for question generation: its scores, its examples, and the commands for one's own questions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import prepare_questions
import pytest
from support_dry_run import LFHC_FLAGS

from fairseq_posenc import metrics
from fairseq_posenc.papers.reading import figures
from recipes.lib import runs
from recipes.lib.departures import flags
from recipes.lib.encodings import published
from recipes.lib.invented import questions as builtin
from recipes.question_generation import score

RUN = Path(__file__).parents[3] / "recipes" / "question_generation" / "run.sh"
PIECES = "--bad repair --context sentence --length 64 --longest-answer 20 --limit 600 --limit-valid 60 --vocabulary 200"


def call(module: Any, *words: object) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [module.__name__, *map(str, words)])
        module.main()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepare the invented questions as the preset smoke does."""
    folder = tmp_path_factory.mktemp("questions")
    call(builtin, "--output", folder / "builtin", "--seed", 1)
    files = ["--corpus", str(folder / "builtin"), "--output", str(folder / "data")]
    assert prepare_questions.main([*files, *PIECES.split()]) == 0
    return folder / "data"


def items(data: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (data / "valid.surface.jsonl").read_text("utf-8").splitlines()]


# --- scores


def test_an_item_without_a_question_is_not_scored_as_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "generate-valid.txt"
    path.write_text("H-0\t-1\twho ?\nH-2\t-1\twhen ?\n")
    with pytest.raises(SystemExit, match=r"questions of 1 items are missing \(the first are 1"):
        score.generated(path)


def test_a_file_of_questions_is_scored(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    perfect, few = tmp_path / "perfect.txt", tmp_path / "few.txt"
    perfect.write_text("".join(f"{item['question']}\n" for item in items(data)))
    call(score, "--data", data, "--hypotheses", perfect)
    assert json.loads(capsys.readouterr().out)["ROUGE-L"] == 100
    few.write_text("what ?\n")
    with pytest.raises(SystemExit, match="1 questions, but the split has 60 items"):
        call(score, "--data", data, "--hypotheses", few)
    with pytest.raises(SystemExit, match=r"test\.surface\.jsonl: this file does not exist"):
        call(score, "--data", data, "--split", "test", "--hypotheses", few)


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
    call(score, "--run", tmp_path, "--data", data)
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


# --- settings


def printed(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([RUN, *arguments], capture_output=True, text=True)


@pytest.mark.parametrize(("preset", "column"), [("paper", "SQuAD"), ("paper-cmrc", "CMRC")])
def test_the_presets_are_the_papers(preset: str, column: str) -> None:
    settings = runs.settings(printed("--preset", preset, "--settings").stdout)
    paper = {figure.row: figure.value for figure in figures("LFHC", table="Table 4", column=column)}
    train = flags(list(settings["train"]))
    assert {row: float(train[flag]) for row, flag in LFHC_FLAGS.items()} == {row: paper[row] for row in LFHC_FLAGS}
    assert train["total-num-update"] == train["max-update"]
    for k in ("", "-k-shaw", "-k-lfhc"):
        labels = runs.settings(printed("--preset", f"{preset}{k}", "--settings").stdout)["pos_enc"]
        for label in str(labels).replace("],", "] ").replace("xl,", "xl ").split():
            assert published(figures("LFHC", column=column), label), label


def test_ones_own_files_and_prepared_questions(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    arguments = ["--corpus", str(tmp_path), "--output", str(tmp_path / "out"), "--dry-run"]
    assert (
        f"--train {tmp_path}/a.json --valid {tmp_path}/b.json" in printed(*arguments, "--sets", "a.json,b.json").stdout
    )
    assert "--sets is missing. Write TRAIN,VALID" in printed(*arguments, "--sets", "a.json").stderr
    (tmp_path / "questions.json").write_text("{}")
    commands = printed(*arguments).stdout
    assert "prepare_questions.py" not in commands
    assert f"fairseq-train {tmp_path} " in commands
