"""The question generation recipe: its plan, what is refused, the papers' numbers, and its scores."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support_prepared import prepare_questions

from fairseq_posenc import scoring
from recipes.lib.curves import figures
from recipes.lib.encodings import parse
from recipes.lib.recipe import ROOT, shown
from recipes.lib.settings import load
from recipes.lib.stages import Stage
from recipes.lib.values import Refused
from recipes.question_generation import baselines, builtin, compare, gallery, score
from recipes.question_generation.__main__ import QUESTION_GENERATION
from recipes.question_generation.published import paper
from recipes.question_generation.settings import Settings, Variant

OUTPUT = Path("/tmp/an output")
PAPERS = [name for name in QUESTION_GENERATION.presets() if name.startswith("paper")]


def settings(preset: str = "small", **given: str) -> Settings:
    return load(QUESTION_GENERATION, preset, given={name.replace("__", "."): value for name, value in given.items()})


def stages(preset: str = "small", **given: str) -> dict[str, Stage]:
    plan = QUESTION_GENERATION.plan(settings(preset, **given), OUTPUT, shown(OUTPUT))
    return {stage.name: stage for stage in plan.stages()}


def value(stage: Stage, flag: str) -> str:
    return stage.command[stage.command.index(flag) + 1]


# --- the plan


@pytest.mark.parametrize("preset", QUESTION_GENERATION.presets())
def test_every_preset_plans_every_stage(preset: str) -> None:
    found = stages(preset, pos_enc="xl,shaw[clip=8]", dataset="builtin")
    kinds = list(dict.fromkeys(name.partition(":")[0] for name in found))
    assert kinds == ["check", "builtin", "prepare", "baselines", "train", "generate", "score", "compare"]


@pytest.mark.parametrize("preset", PAPERS)
def test_the_papers_numbers(preset: str) -> None:
    """METHODS.md 6.C."""
    found = settings(preset)
    warm, steps, every = (600, 4500, 300) if "cmrc" in preset else (4000, 30_000, 2000)
    wanted = {"lr": 2e-5, "clip-norm": 0.25, "max-update": steps, "warmup-updates": warm, "batch-size": 32}
    wanted |= {"dropout": 0.1, "end-learning-rate": 1e-9, "validate-interval-updates": every}
    wanted |= {"lr-scheduler": "polynomial_decay", "total-num-update": steps, "weight-decay": 0.01}
    assert found.train["validate-interval"] > 1000  # fairseq would validate at the end of every epoch too
    assert wanted.items() <= found.train.items()
    assert {"beam": 5, "lenpen": 0.6, "no-repeat-ngram-size": 3}.items() <= found.generate.items()
    assert (found.longest, found.longest_answer, found.longest_question, found.context) == (512, 100, 50, "paragraph")
    assert found.dataset == ("cmrc" if "cmrc" in preset else "squad")


@pytest.mark.parametrize("preset", PAPERS)
def test_the_papers_rows_have_a_figure_each(preset: str) -> None:
    for encoding in settings(preset).encodings:
        assert paper(encoding, "characters" if "cmrc" in preset else "words"), encoding.label


def test_the_papers_figures() -> None:
    assert paper(parse("diet-rel[clip=50]"), "words") == 47.14
    assert paper(parse("gcdf"), "characters") == 60.63
    assert paper(parse("t5"), "words") is None
    assert paper(parse("xl"), "spaces") is None


def test_squad_and_cmrc_are_fetched() -> None:
    squad, cmrc = stages("paper"), stages("paper-cmrc")
    assert "squad/train-v1.1.json" in squad["fetch"].command
    assert value(squad["prepare"], "--valid") == "data/raw/squad/dev-v1.1.json"
    assert value(cmrc["prepare"], "--test") == "data/raw/cmrc2018/cmrc2018_trial.json"
    assert value(cmrc["prepare"], "--tokenizer-path").endswith("/chinese-roberta-wwm-ext")
    assert value(squad["train:xl"], "--encoder-from").endswith("/bert-base-cased")
    assert "--max-source-positions" not in squad["train:xl"].command
    assert "--encoder-from" not in squad["check"].command


def test_training_and_decoding_are_fairseqs() -> None:
    found = stages("small", pos_enc="shaw[clip=8]", copy="both")
    train = found["train:shaw.clip=8"]
    assert value(train, "--task") == "posenc_question_generation"
    assert value(train, "--criterion") == "question_generation"
    assert (value(train, "--pos-enc"), value(train, "--pos-enc-args")) == ("shaw", "clip=8")
    assert (value(train, "--max-source-positions"), value(train, "--max-target-positions")) == ("128", "64")
    assert "--no-copy" not in train.command
    assert "--no-copy" in found["train:shaw.clip=8.no-copy"].command
    generate = found["generate:shaw.clip=8"]
    assert generate.command[0] == "fairseq-generate"
    assert [value(generate, flag) for flag in ("--beam", "--lenpen", "--no-repeat-ngram-size")] == ["5", "0.6", "3"]
    assert value(generate, "--required-batch-size-multiple") == "1"
    assert value(found["compare"], "--copy") == "both"


def test_decoding_knows_the_lengths_of_the_training() -> None:
    generate = stages(longest="600", longest_question="90")["generate:xl"]
    flags = ("--max-source-positions", "--max-target-positions", "--max-len-b")
    assert [value(generate, flag) for flag in flags] == ["600", "104", "90"]


def test_a_folder_a_file_and_prepared_questions(tmp_path: Path) -> None:
    folder = tmp_path / "q"
    folder.mkdir()
    for name in ("train.json", "one.json", "two.json", "src-train.txt", "tgt-train.txt"):
        (folder / name).write_text("{}")
    named = stages(dataset=str(folder), train_set="one.json", valid_set="two.json")["prepare"]
    assert value(named, "--train") == str(folder / "one.json")
    assert "--seed" not in named.command
    lone = stages(dataset=str(folder / "one.json"))["prepare"]
    assert (value(lone, "--text"), value(lone, "--seed")) == (str(folder / "one.json"), "1")
    lines = stages(dataset=str(folder), train_set="src-train.txt", valid_set="src-train.txt")["prepare"]
    assert "--context" not in lines.command
    (folder / "questions.json").write_text("{}")
    found = stages(dataset=str(folder))
    assert "prepare" not in found
    assert folder.as_posix() in found["train:xl"].command


def test_smoke_takes_the_first_questions_of_any_dataset(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("{}")
    for dataset in ("builtin", "squad", str(tmp_path), str(tmp_path / "mine.json")):
        prepare = stages("smoke", dataset=dataset)["prepare"]
        assert (value(prepare, "--limit"), value(prepare, "--limit-valid")) == ("600", "60")


def test_where_questions_lie_does_not_count(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.json").write_text("same")
    one, two = (stages(dataset=str(tmp_path / name))["prepare"].key() for name in ("a", "b"))
    assert one == two
    (tmp_path / "b" / "train.json").write_text("other")
    assert stages(dataset=str(tmp_path / "b"))["prepare"].key() != one


def test_another_search_trains_nothing_again() -> None:
    old, new = stages(generate__beam="5"), stages(generate__beam="2")
    changed = {name.partition(":")[0] for name in old if old[name].key() != new[name].key()}
    assert changed == {"check", "generate", "score", "compare"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dataset": "no-such"}, "--dataset no-such: no such file or folder; there are: squad, cmrc, builtin"),
        ({"train_set": "x.json"}, "--train-set names a file of a FOLDER of your questions"),
        ({"freeze_encoder": "true"}, "--freeze-encoder is for --encoder DIR"),
        ({"encoder": "bert", "cased": "true"}, "--tokenizer and --cased are for --encoder scratch"),
        ({"train__encoder-from": "bert"}, "decided by --encoder"),
        ({"train__no-copy": "true"}, "decided by --copy"),
        ({"train__max-source-positions": "9"}, "decided by --longest"),
        ({"generate__path": "x"}, "decided by --output"),
        ({"generate__post-process": "x"}, "decided by the pieces of the prepared questions"),
        ({"vocabulary": "1"}, "--vocabulary is 1: 5 or more"),
        ({"longest": "43"}, "--longest 43 leaves no room behind --longest-answer 40"),
        ({"pos_enc": "xk"}, "no position encoding 'xk'"),
    ],
)
def test_what_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(Refused, match=message):
        stages(**given)


def test_a_dry_run_prints_every_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "recipes.question_generation", "--preset", "paper", "--dry-run"]
    told = subprocess.run([*command, "--output", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert told.stdout.count("fairseq-train") == 5
    assert told.stdout.count("recipes.question_generation.score") == 5
    assert not list(tmp_path.iterdir())


# --- the scores


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in questions, prepared as preset smoke has them."""
    folder = tmp_path_factory.mktemp("questions")
    run(builtin, "--output", folder / "builtin", "--seed", 1)
    command = stages("smoke")["prepare"].command
    words = command[command.index("--bad") :]
    files = ["--text", str(folder / "builtin"), "--output", str(folder / "data")]
    assert prepare_questions.main([*files, *words]) == 0
    return folder / "data"


def lines(data: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (data / "valid.surface.jsonl").read_text("utf-8").splitlines()]


def run(module: Any, *words: object) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [module.__name__, *map(str, words)])
        module.main()


def test_the_built_in_questions_need_copies(data: Path) -> None:
    record = json.loads((data / "questions.json").read_text())
    assert record["splits"]["train"]["items"] == 600
    assert record["splits"]["valid"]["items"] == 60
    assert record["splits"]["valid"]["target copied"] > 50
    assert record["problems"] == {}


def test_an_item_without_a_question_is_not_scored_as_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "generate-valid.txt"
    path.write_text("H-0\t-1\twho ?\nH-2\t-1\twhen ?\n")
    with pytest.raises(SystemExit, match=r"no question of 1 items \(1"):
        score.generated(path)


def test_generated_pieces_become_text_and_scores(data: Path, tmp_path: Path) -> None:
    given = lines(data)
    # the words of each reference, as fairseq-generate prints them, in another order; copies stand there as words
    pieces = ["when was the mill of zorn built ?"] * len(given)
    pieces[0] = f"who is {given[0]['unknown'][0]} ?"
    text = "".join(f"S-{n}\tx\nH-{n}\t-0.5\t{one}\nD-{n}\t-0.5\tx\n" for n, one in reversed(list(enumerate(pieces))))
    (tmp_path / "generate-valid.txt").write_text(text)
    files = ["--questions", tmp_path / "q.txt", "--output", tmp_path / "s.json"]
    run(score, "--data", data, "--generated", tmp_path / "generate-valid.txt", *files)
    found = json.loads((tmp_path / "s.json").read_text())
    questions = (tmp_path / "q.txt").read_text().splitlines()
    assert questions[0] == f"who is {given[0]['unknown'][0]}?"
    assert questions[1] == "when was the mill of zorn built?"
    wanted = scoring.score(questions, [one["references"] for one in given], [one["source"] for one in given])
    assert found["rouge_l"] == pytest.approx(wanted.rouge_l)
    assert 0 < found["unknown words copied"] < 0.01
    perfect = tmp_path / "perfect.txt"
    perfect.write_text("".join(f"{one['question']}\n" for one in given))
    run(score, "--data", data, "--hypotheses", perfect, "--output", tmp_path / "p.json")
    assert json.loads((tmp_path / "p.json").read_text())["rouge_l"] == 1.0


def test_a_missing_question_is_told(data: Path, tmp_path: Path) -> None:
    (tmp_path / "few.txt").write_text("what ?\n")
    with pytest.raises(SystemExit, match="1 questions were generated, the split has 60 items"):
        run(score, "--data", data, "--hypotheses", tmp_path / "few.txt", "--output", tmp_path / "s.json")
    with pytest.raises(SystemExit, match=r"test\.surface\.jsonl: no such file"):
        run(score, "--data", data, "--split", "test", "--hypotheses", tmp_path / "few.txt", "--output", "s.json")


def test_the_comparison_has_models_baselines_and_a_gallery(data: Path, tmp_path: Path) -> None:
    run(baselines, "--data", data, "--output", tmp_path / "baselines.json")
    base = json.loads((tmp_path / "baselines.json").read_text())
    first, constant = base
    assert first == "first 10 words of the sentence"
    assert constant.startswith("always '")
    assert base[constant]["distinct"] < 0.05
    variants = [Variant(parse("shaw[clip=8,share=none]"), copy) for copy in (True, False)]
    for number, variant in enumerate(variants):
        questions = tmp_path / "questions" / f"{variant.slug}.txt"
        questions.parent.mkdir(exist_ok=True)
        questions.write_text("".join(f"{one['question'] if number == 0 else 'what?'}\n" for one in lines(data)))
        scores = tmp_path / "scores" / f"{variant.slug}.json"
        run(score, "--data", data, "--hypotheses", questions, "--output", scores)
        found = json.loads(scores.read_text()) | {"unknown words copied": 0.1, "unknown words left": 0}
        scores.write_text(json.dumps(found))
        log = tmp_path / "logs" / f"{variant.slug}.train.log"
        log.parent.mkdir(exist_ok=True)
        inner = {"loss": "3", "wps": "10", "num_updates": "20"}
        valid = {"valid_loss": "3", "valid_num_updates": "20", "valid_rouge_l": "0.25", "valid_copied": "0.4"}
        log.write_text(f"x | train_inner | {json.dumps(inner)}\nx | valid | {json.dumps(valid)}\n")
        marker = tmp_path / ".stages" / f"train.{variant.slug}.done"
        marker.parent.mkdir(exist_ok=True)
        marker.write_text(json.dumps({"seconds": 60, "command": "c", "commit": "d"}))
    run(
        compare,
        "--output",
        tmp_path,
        "--data",
        data,
        "--split",
        "valid",
        "--copy",
        "both",
        "--pos-enc",
        "shaw[clip=8,share=none]",
    )
    rows = json.loads((tmp_path / "comparison.json").read_text())
    assert [row["model"] for row in rows] == [
        "shaw[clip=8,share=none]",
        "shaw[clip=8,share=none], no copy",
        first,
        constant,
    ]
    assert [row["beats baselines"] for row in rows] == [True, False, None, None]
    assert [row["paper"] for row in rows] == [47.26, None, None, None]
    assert (rows[0]["last ROUGE-L"], rows[0]["copy gate"], rows[0]["ROUGE-L"]) == (25.0, 0.4, 100.0)
    assert (tmp_path / "curves.png").stat().st_size > 1000
    assert figures(tmp_path / "logs" / "shaw.clip=8.share=none.train.log", "valid_else") == []
    text = (tmp_path / "gallery.md").read_text("utf-8")
    assert text.count("- answer: ") == 20
    assert text.count("- shaw[clip=8,share=none], no copy: what?") == 20


def test_a_gallery_shows_what_there_is() -> None:
    given = [
        {"source": 0, "sentence": "<s> a", "references": ["b", "c"]},
        {"source": 0, "sentence": "a", "references": []},
    ]
    text = gallery.gallery(given, {"xl": ["d", "e"]})
    assert "**&lt;s> a**\n- asked: b\n- asked: c\n- xl: d" in text
    assert "- xl: e" not in text
