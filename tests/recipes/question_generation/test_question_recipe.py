"""Test the question generation recipe: its plan and the papers' numbers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support_recipes import Planned, value

from recipes.lib.encodings import parse
from recipes.lib.package import figures
from recipes.lib.recipe import ROOT
from recipes.lib.seeds import Seeds
from recipes.lib.values import Refused
from recipes.question_generation import compare
from recipes.question_generation.__main__ import QUESTION_GENERATION, hints
from recipes.question_generation.compare import dataset, paper
from recipes.question_generation.settings import RECORD, Variant
from recipes.question_generation.sources import FETCHED, PUBLISHED

PAPERS = [name for name in QUESTION_GENERATION.presets() if name.startswith("paper")]
PLANNED = Planned(QUESTION_GENERATION)
settings, stages = PLANNED.settings, PLANNED.stages


# --- the plan


@pytest.mark.parametrize("preset", QUESTION_GENERATION.presets())
def test_every_preset_plans_every_stage(preset: str) -> None:
    plan = stages(preset, pos_enc="xl,shaw[clip=8]", dataset="builtin")
    kinds = list(dict.fromkeys(name.partition(":")[0] for name in plan))
    assert kinds == ["check", "builtin", "prepare", "baselines", "train", "generate", "score", "compare"]


@pytest.mark.parametrize("preset", PAPERS)
def test_the_papers_numbers(preset: str) -> None:
    """Compare with the settings in the LFHC/GCDF paper (Qu et al. 2021, Table 4)."""
    loaded = settings(preset)
    column = "CMRC" if "cmrc" in preset else "SQuAD"
    theirs = {one.row: one.value for one in figures("LFHC", table="Table 4", column=column)}
    flags = {"lr": "lr rate", "clip-norm": "clip norm", "max-update": "maximum steps", "warmup-updates": "warmup steps"}
    flags |= {"batch-size": "batch size", "dropout": "dropout", "validate-interval-updates": "eval interval"}
    expected = {flag: theirs[row] for flag, row in flags.items()}
    expected |= {"end-learning-rate": 1e-9, "total-num-update": theirs["maximum steps"], "weight-decay": 0.01}
    assert loaded.train["lr-scheduler"] == "polynomial_decay"
    assert loaded.train["validate-interval"] > 1000  # otherwise, fairseq would also validate at the end of every epoch
    assert expected.items() <= loaded.train.items()
    assert {"beam": 5, "lenpen": 0.6, "no-repeat-ngram-size": 3}.items() <= loaded.generate.items()
    assert (loaded.longest, loaded.longest_answer, loaded.longest_question, loaded.context) == (
        512,
        100,
        50,
        "paragraph",
    )
    assert loaded.dataset == ("cmrc" if "cmrc" in preset else "squad")


@pytest.mark.parametrize("preset", PAPERS)
def test_the_papers_rows_have_a_figure_each(preset: str) -> None:
    for encoding in settings(preset).encodings:
        assert paper(encoding, settings(preset).dataset), encoding.label


def test_the_papers_figures() -> None:
    assert paper(parse("diet-rel[clip=50]"), "squad") == 47.14
    assert paper(parse("gcdf"), "cmrc") == 60.63
    assert paper(parse("t5"), "squad") is None
    assert paper(parse("xl"), None) is None


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"train": "train-v1.1.json", "valid": "dev-v1.1.json.gz"}, "squad"),
        ({"train": "train-v1.1.json", "valid": "dev-v2.0.json"}, None),
        ({"train": "du-test-v1.1.json.gz", "valid": "dev-v1.1.part1.json.gz"}, None),
        ({"train": "cmrc2018_train.json", "valid": "cmrc2018_dev.json", "test": "cmrc2018_trial.json"}, "cmrc"),
        ({"train": "cmrc2018_dev.json.gz", "valid": "cmrc2018_trial.json.gz"}, None),
        ({"train": "src-train.txt", "valid": "src-dev.txt"}, None),
        ({"all": "dev-v1.1.json"}, None),
    ],
)
def test_the_record_says_whether_the_paper_had_these_files(names: dict[str, str], expected: str | None) -> None:
    for name, counts in PUBLISHED.items():
        assert dataset(record(names, **counts), "valid") == (name if name == expected else None)


@pytest.mark.parametrize("name", FETCHED)
def test_only_all_questions_of_the_development_set_have_the_papers_figure(name: str) -> None:
    files = {split: Path(path).name for split, path in FETCHED[name].items()}
    train, valid = PUBLISHED[name]["train"], PUBLISHED[name]["valid"]
    assert dataset(record(files, train=train, valid=valid, test=60), "valid") == name
    assert dataset(record(files, train=600, valid=valid), "valid") is None  # --limit
    assert dataset(record(files, train=train, valid=60), "valid") is None  # --limit-valid
    assert dataset(record(files, train=train, valid=valid, test=1002), "test") is None  # --split test


def record(files: dict[str, str], **given: int) -> dict[str, Any]:
    """Return the parts of questions.json that say which questions a folder has."""
    return {
        "files": {split: {"name": name} for split, name in files.items()},
        "splits": {split: {"given": number} for split, number in given.items()},
    }


@pytest.mark.parametrize(("preset", "other"), [("paper", "cmrc"), ("paper-cmrc", "squad"), ("paper-k-shaw", "cmrc")])
def test_the_numbers_of_the_other_dataset_are_refused(preset: str, other: str) -> None:
    with pytest.raises(Refused, match=f"--dataset {other}: this preset is for"):
        settings(preset, dataset=other)
    assert settings(preset, dataset=other, numbers_of="").dataset == other


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
    plan = stages("small", pos_enc="shaw[clip=8]", copy="both")
    train = plan["train:shaw.clip=8"]
    assert value(train, "--task") == "posenc_question_generation"
    assert value(train, "--criterion") == "question_generation"
    assert (value(train, "--pos-enc"), value(train, "--pos-enc-args")) == ("shaw", "clip=8")
    assert (value(train, "--max-source-positions"), value(train, "--max-target-positions")) == ("128", "64")
    assert "--no-copy" not in train.command
    assert "--no-copy" in plan["train:shaw.clip=8.no-copy"].command
    generate = plan["generate:shaw.clip=8"]
    assert generate.command[0] == "fairseq-generate"
    assert value(generate, "--scoring") == "rouge_l"
    assert [value(generate, flag) for flag in ("--beam", "--lenpen", "--no-repeat-ngram-size")] == ["5", "0.6", "3"]
    assert value(generate, "--required-batch-size-multiple") == "1"
    assert value(plan["compare"], "--copy") == "both"


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
    plan = stages(dataset=str(folder))
    assert "prepare" not in plan
    assert folder.as_posix() in plan["train:xl"].command


def test_smoke_takes_the_first_questions_of_any_dataset(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("{}")
    for name in ("builtin", "squad", str(tmp_path), str(tmp_path / "mine.json")):
        prepare = stages("smoke", dataset=name)["prepare"]
        assert (value(prepare, "--limit"), value(prepare, "--limit-valid")) == ("600", "60")


def test_where_questions_lie_does_not_count(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.json").write_text("same")
    one, two = (stages(dataset=str(tmp_path / name))["prepare"].key() for name in ("a", "b"))
    assert one == two
    (tmp_path / "b" / "train.json").write_text("other")
    assert stages(dataset=str(tmp_path / "b"))["prepare"].key() != one


def test_which_file_is_trained_on_counts(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(name)
    one, other = (
        stages(dataset=str(tmp_path), train_set=first, valid_set=second)["prepare"].key()
        for first, second in (("a.json", "b.json"), ("b.json", "a.json"))
    )
    assert one != other


def test_the_encoder_counts_not_where_it_lies(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for file in ("config.json", "vocab.txt", "model.safetensors"):
            (tmp_path / name / file).write_text(file)
    kinds = ("prepare", "train:xl", "generate:xl", "score:xl")

    def keys(name: str) -> list[str]:
        plan = stages(encoder=str(tmp_path / name), dataset="builtin")
        return [plan[kind].key() for kind in kinds]

    first = keys("a")
    assert keys("b") == first
    for file, same in (("model.safetensors", 1), ("vocab.txt", 0)):
        (tmp_path / "b" / file).write_text("other")
        changed = keys("b")
        assert [one == other for one, other in zip(changed, first, strict=True)] == [True] * same + [False] * (4 - same)


def test_scripts_that_decide_a_result_are_inputs() -> None:
    plan = stages()
    named = {name: {path.name for path in plan[name].inputs} for name in ("prepare", "baselines", "score:xl")}
    assert {"question_pieces.py", "prepare_questions.py", "pipeline.py"} <= named["prepare"]
    assert {"rouge.py", "baselines.py", "score.py"} <= named["baselines"]
    assert {"rouge.py", "score.py", "question_pieces.py"} <= named["score:xl"]


@pytest.mark.parametrize(("batch", "buffer"), [("64", "64"), ("5", "5")])
def test_the_hint_reads_as_many_lines_as_a_batch_has(batch: str, buffer: str, tmp_path: Path) -> None:
    (tmp_path / "comparison.json").write_text('[{"model": "xl", "ROUGE-L": 1.0, "checkpoint": "xl"}]')
    (command,) = hints(settings(**{"generate__batch-size": batch}), tmp_path).values()
    assert f"--buffer-size {buffer} " in command
    assert command.startswith(f"{ROOT}/recipes/lib/here.sh ")
    assert f"--path {tmp_path}/checkpoints/" in command


def test_another_search_trains_nothing_again() -> None:
    old, new = stages(generate__beam="5"), stages(generate__beam="2")
    changed = {name.partition(":")[0] for name in old if old[name].key() != new[name].key()}
    assert changed == {"check", "generate", "score", "compare"}


def test_a_dry_run_prints_every_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "recipes.question_generation", "--preset", "paper", "--dry-run"]
    process = subprocess.run(
        [*command, "--output", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.count("fairseq-train") == 50  # five encodings with ten seeds
    assert process.stdout.count("recipes.question_generation.score") == 50
    assert not list(tmp_path.iterdir())


def test_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    score = {"rouge_l": 0.5, "rouge_l_coco": 0.4, "bleu": 5.0, "chrf": 20.0, "distinct": 0.7}
    copied = {"unknown words copied": 0.01, "unknown words left": 0.0}
    for name in ("scores", "logs"):
        (tmp_path / name).mkdir()
    (tmp_path / RECORD).write_text(json.dumps({"files": {}, "splits": {}}))
    (tmp_path / "scores" / "t5.json").write_text(json.dumps(score | copied))
    (tmp_path / "baselines.json").write_text(json.dumps({"first words": score | {"rouge_l": 0.2}}))
    size = "| INFO | fairseq_cli.train | num. shared model params: 2,297,856 (num. trained: 2,000,000)\n"
    inner = '| INFO | train_inner | {"num_updates": "20", "loss": "3.5", "wps": "100"}\n'
    (tmp_path / "logs" / "t5.train.log").write_text(size + inner)
    monkeypatch.setattr(compare, "updates", lambda checkpoint: 20)
    variant = Variant(parse("t5"), True)
    model, baseline = compare.compare([variant], Seeds((1,), 1), tmp_path, tmp_path, "valid")
    assert (model["ROUGE-L"], model["parameters"], model["beats baselines"]) == (50.0, 2_297_856, True)
    assert (baseline["ROUGE-L"], baseline["parameters"], list(baseline)) == (20.0, None, list(model))
