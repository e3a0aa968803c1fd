"""Test the XTREME recipe: plans for XNLI and for questions, the paper's numbers, what is refused, and its tables."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from glue import formats
from spans import sets as files
from support_recipes import Planned, value

from recipes.finetune_glue.__main__ import FINETUNE_GLUE
from recipes.finetune_xtreme import compare, join, published
from recipes.finetune_xtreme.__main__ import FINETUNE_XTREME
from recipes.finetune_xtreme.languages import rows_of_sentences
from recipes.finetune_xtreme.sets import SETS, XNLI_LANGUAGES, without_files
from recipes.lib.command import main
from recipes.lib.encodings import parse
from recipes.lib.finetuning.models import Model
from recipes.lib.finetuning.questions.files import GOLD
from recipes.lib.finetuning.sentences import xnli
from recipes.lib.finetuning.sentences.published import paper
from recipes.lib.finetuning.sentences.settings import PROTOCOLS, SentenceSettings
from recipes.lib.finetuning.trials import Grid, Trial, Variant
from recipes.lib.recipe import Row
from recipes.lib.settings import load, read_preset
from recipes.lib.values import Refused

MODEL = "/models/shaw/checkpoint_last.pt"
ABLATIONS = ("rank", "sharing")
#: Trainings of each preset.
TRAININGS = {"paper": 20, "rank": 20, "sharing": 40}


def needed(preset: str) -> dict[str, str]:
    return {"checkpoint": MODEL, **({"pos_enc": ""} if preset in ABLATIONS else {})}


stages = Planned(FINETUNE_XTREME, needed=needed).stages


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write XTREME's folders with empty files."""
    names = ["squad/train-v1.1.json.gz", "xquad/xquad.en.json", "xquad/xquad.de.part1.json.gz"]
    for name in [*names, "dev-en.tsv", "dev.json"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


# --- plans


def test_xnlis_mean_is_over_all_languages_that_are_scored() -> None:
    """The DIET paper does not say whether its mean includes English.

    XTREME's mean does, and so do the paper's numbers of languages for the question sets (XQuAD 11, MLQA 7).
    """
    scores = {name: {"accuracy": score} for name, score in (("valid", 90.0), ("valid-de", 50.0), ("valid-zh", 40.0))}
    with_means = xnli.with_means(scores)
    assert (with_means["mean"]["accuracy"], with_means["mean but en"]["accuracy"]) == (60.0, 45.0)
    scores |= {name: {"accuracy": score} for name, score in (("test-en", 80.0), ("test-de", 60.0))}
    assert xnli.with_means(scores)["mean"]["accuracy"] == 70.0
    assert xnli.differences(scores) == ["2 of 15 languages"]
    only = xnli.with_means({name: scores[name] for name in ("valid", "test-en")})  # as with --languages en
    assert (only["mean"]["accuracy"], "mean but en" in only) == (80.0, False)
    assert xnli.scored(["valid", "test-en", "valid-de"]) == ["valid", "valid-de"]
    assert paper("diet-xtreme", parse("diet-abs[rank=128,share=layer-wise]"), "head", "XNLI") == 68.5


def test_languages_that_are_not_scored_are_named() -> None:
    labelled = ("train", "valid", "valid-zh", "test-en", "test-de")
    splits = {split: {"labelled": split in labelled} for split in (*labelled, "test-fr")}
    assert xnli.summary(splits) == (
        "XNLI is scored on the test sets of en, de. "
        "These languages have no score, because their sets have no labels: fr, zh."
    )
    assert xnli.summary({split: splits[split] for split in ("train", "valid", "valid-zh")}) == (
        "XNLI is scored on the development sets of en, zh. The English set also chooses checkpoints."
    )


@pytest.mark.parametrize("preset", FINETUNE_XTREME.presets())
def test_the_xtreme_recipe_plans_every_stage(preset: str) -> None:
    plan = stages(preset, checkpoint="builtin", task="xnli")
    assert "data-bin-scripts/prepare_xtreme.sh" in plan["prepare:XNLI.learned"].command
    trains = [stage for stage in plan.values() if stage.kind == "train"]
    assert len(trains) == TRAININGS.get(preset, 1)
    assert all(value(stage, "--num-classes") == "3" for stage in trains)


@pytest.mark.parametrize("preset", FINETUNE_XTREME.presets())
def test_sets_of_questions_share_a_training(preset: str) -> None:
    plan = stages(preset, task="xquad,MLQA,tydiqa")
    assert {f"prepare:shaw{one}" for one in ("", ".xquad", ".mlqa", ".tydiqa")} <= set(plan)
    trains = [stage for stage in plan.values() if stage.kind == "train"]
    assert len(trains) == TRAININGS.get(preset, 1)
    for train in trains:
        assert "fairseq-train" in train.command
        assert {"prepare:shaw"} == {one.name for one in train.after if one.kind == "prepare"}
        for kind in ("predict", "score"):
            assert {f"{kind}:{train.variant}.{one.name}" for one in SETS.values()} <= set(plan)
    assert ("fetch" in plan, "fetch:languages" in plan) == (preset != "smoke", preset != "smoke")


def test_diets_multilingual_setting() -> None:
    """The protocol of Chen et al. 2021 (DIET), Table 7."""
    plan = stages("paper", task="xquad", segments="head")
    train = plan["train:shaw.head.lr2e-05.e3.s4"]
    values = [value(train, flag) for flag in ("--lr", "--epochs", "--seed", "--batch-size", "--warmup", "--segments")]
    assert values == ["2e-05", "3", "4", "32", "0.1", "head"]
    assert value(plan["prepare:shaw.xquad"], "--longest") == "512"
    assert len(value(plan["prepare:shaw.xquad"], "--languages").split(",")) == 11


def test_ones_own_files_and_languages(folder: Path) -> None:
    plan = stages(task="xquad", data=str(folder), languages="de,en")
    assert not any(stage.kind == "fetch" for stage in plan.values())
    assert value(plan["prepare:shaw"], "--train") == str(folder / "squad" / "train-v1.1.json.gz")
    assert value(plan["prepare:shaw"], "--eval") == str(folder / "dev.json")
    shaw = plan["prepare:shaw.xquad"]
    assert (value(shaw, "--languages"), value(shaw, "--data")) == ("en,de", str(folder))
    assert folder / "xquad" / "xquad.de.part1.json.gz" in shaw.inputs
    assert value(stages(data=str(folder), languages="de")["prepare:XNLI.shaw"], "--languages") == "de"


def test_one_file_does_not_train_and_choose(folder: Path) -> None:
    with pytest.raises(Refused, match="--train-file and --dev-file are the same file"):
        stages(task="xquad", data=str(folder), train_file=str(folder / "dev.json"))


def test_without_english_questions_that_choose_nothing_is_validated(folder: Path) -> None:
    (folder / "dev.json").unlink()
    plan = stages(task="xquad", data=str(folder))
    assert "--disable-validation" in plan["train:shaw.input.lr0.0003.e3.s1"].command
    assert "score:shaw.input.lr0.0003.e3.s1" not in plan
    with pytest.raises(Refused, match="--lr or --epochs needs English questions"):
        stages(task="xquad", data=str(folder), lr="0.1,0.2")
    with pytest.raises(Refused, match="--keep best needs English questions"):
        stages(task="xquad", data=str(folder), keep="best")
    answer = plan["predict:shaw.input.lr0.0003.e3.s1.xquad"]
    assert value(answer, "--checkpoint").endswith("/checkpoint_last.pt")
    assert value(plan["compare"], "--differs").startswith("--lr 0.0003, not 1e-05,")
    assert "the last checkpoint, not the best" in plan["compare"].command


def test_longer_windows_have_the_cure_that_the_check_names() -> None:
    plan = stages(task="xquad", pos_enc_args="extend=repeat", longest="576")
    for name in ("check:shaw.input", "train:shaw.input.lr0.0003.e3.s1"):
        assert value(plan[name], "--pos-enc-args") == "extend=repeat"
    assert value(plan["check:shaw.input"], "--max-length") == value(plan["prepare:shaw.xquad"], "--longest") == "576"


def test_the_best_checkpoint_answers(folder: Path) -> None:
    """The best checkpoint answers if there are English questions to choose by."""
    plan = stages(task="xquad", data=str(folder))
    train, name = plan["train:shaw.input.lr0.0003.e3.s1"], "shaw.input.lr0.0003.e3.s1"
    assert value(train, "--best-checkpoint-metric") == "spans"
    assert "--maximize-best-checkpoint-metric" in train.command
    for kind in (f"predict:{name}", f"predict:{name}.xquad"):
        assert value(plan[kind], "--checkpoint").endswith("/checkpoint_best.pt")
    last = stages(task="xquad", data=str(folder), keep="last")
    assert value(last[f"predict:{name}"], "--checkpoint").endswith("/checkpoint_last.pt")
    assert "--best-checkpoint-metric" not in last[f"train:{name}"].command


def test_nothing_is_trained_or_chosen_by_what_is_scored(folder: Path) -> None:
    """The questions of XQuAD, which are a part of SQuAD's development set, are left out."""
    plan = stages(task="xquad,tydiqa", data=str(folder), languages="de,fi")
    words = plan["prepare:shaw"].command
    assert [words[at + 1] for at, word in enumerate(words) if word == "--without"] == [
        *(f"xquad={folder}", f"tydiqa={folder}")
    ]
    assert value(plan["prepare:shaw"], "--languages") == "de,fi"
    assert "--without" not in plan["prepare:shaw.xquad"].command
    key = plan["prepare:shaw"].key()
    (folder / "xquad" / "xquad.de.part1.json.gz").write_text("other")
    assert stages(task="xquad,tydiqa", data=str(folder), languages="de,fi")["prepare:shaw"].key() != key
    fetched = stages("paper", task="xquad")["prepare:shaw"]
    assert value(fetched, "--without") == "xquad=data/raw"
    assert "fetch:languages" in [one.name for one in fetched.after]
    assert "--without" not in stages("smoke", task="xquad", checkpoint="builtin")["prepare:learned"].command


def test_paths_are_the_users(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    plan = stages(task="mlqa", raw="sets", tokenizer_path="cut")
    for name in ("prepare:shaw", "prepare:shaw.mlqa"):
        assert value(plan[name], "--tokenizer-path") == str(folder / "cut")
    assert value(plan["prepare:shaw.mlqa"], "--data") == value(plan["fetch:languages"], "--output")
    assert value(plan["fetch:languages"], "--output") == str(folder / "sets")


@pytest.mark.parametrize("preset", ABLATIONS)
def test_an_ablation_has_the_papers_rows(preset: str) -> None:
    preset_values = read_preset(FINETUNE_XTREME.conf / f"{preset}.toml")
    places = ",".join(f"/run/checkpoints/{parse(one).slug}/checkpoint_last.pt" for one in preset_values["pos-enc"])
    loaded = load(FINETUNE_XTREME, preset, texts={"checkpoint": places, "task": "xquad"})
    assert [model.label for model in loaded.models] == preset_values["pos-enc"]
    assert all(label in loaded.pretrain_command for label in preset_values["pos-enc"])
    rows = [
        (paper("diet-xtreme", one, segments, "XNLI"), *(published.figures(task, one, segments) for task in SETS))
        for one in map(parse, preset_values["pos-enc"])
        for segments in loaded.segments
    ]
    assert all(all(row) for row in rows)
    assert len(set(rows)) == len(rows)
    with pytest.raises(Refused, match="Pretrain a model with this encoding"):
        load(FINETUNE_XTREME, preset, texts={"checkpoint": MODEL})


def test_what_departs_from_the_papers_protocol() -> None:
    def differs(**options: str) -> list[str]:
        words = stages("paper", task="xquad", **options)["compare"].command
        return [words[at + 1] for at, word in enumerate(words) if word == "--differs"]

    assert differs() == []
    departures = differs(seeds="1", epochs="2", stride="64", keep="last")
    assert departures == [
        "--epochs 2, not 3",
        "--stride 64, not 128",
        "1 seed, not 5",
        "the last checkpoint, not the best",
    ]
    often = {"train.save-interval-updates": "100"}
    assert differs(**often) == ["--train.save-interval-updates 100, not 3500"]  # matters to keep=best
    assert differs(**often, keep="last") == ["the last checkpoint, not the best"]


@pytest.mark.parametrize("kind", [FINETUNE_XTREME.settings, FINETUNE_GLUE.settings])
def test_help_names_every_protocol(kind: type[SentenceSettings]) -> None:
    (help_text,) = [one.metadata["help"] for one in fields(kind) if one.name == "protocol"]
    assert all(re.search(rf"\b{path.stem}\b(?!-)", help_text) for path in PROTOCOLS.glob("*.toml"))


def test_results_of_other_models_segments_and_presets_lie_elsewhere() -> None:
    def name(preset: str, run: str, **options: str) -> str:
        place = f"/{run}/checkpoints/shaw/checkpoint_last.pt"
        return FINETUNE_XTREME.folder(load(FINETUNE_XTREME, preset, texts={"checkpoint": place, **options}))

    folders = [name("paper", "a"), name("paper", "b"), name("small", "a"), name("paper", "a", segments="head")]
    assert len(set(folders)) == 4
    assert folders[0] == "finetune_xtreme/paper.xnli.xquad.mlqa.tydiqa.published.a.shaw.diet-xtreme.input.1"


def test_the_two_tables_of_languages_are_one() -> None:
    """The recipe and the scripts each have a table of languages, because neither may import the other."""
    assert {one.name: one.languages for one in SETS.values()} == {
        name: known.languages for name, known in files.SETS.items()
    }
    assert [len(one.languages) for one in SETS.values()] == [11, 7, 9]
    assert formats.LANGUAGES == XNLI_LANGUAGES


# --- what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "MNLI"}, "--task: unknown value 'MNLI'"),
        (
            {"task": "xnli,xquad", "data": "builtin"},
            "--task XNLI,XQuAD: XNLI and the question datasets have different built-in data",
        ),
        ({"task": "mlqa", "languages": "de,el"}, "--languages el: MLQA has only the languages en, ar, de"),
        ({"task": "xquad,mlqa", "languages": "el"}, "--languages el: MLQA has only the languages en, ar, de"),
        ({"languages": "de,de"}, "--languages de,de: a language occurs twice"),
        ({"task": "xquad", "train_rows": "5"}, "--train-rows is only for --data DIR"),
        ({"task": "xquad", "data": "builtin", "raw": "x"}, "--raw has no effect: nothing is fetched"),
        ({"pos_enc_args": "extend=repeat"}, "--task XNLI does not use --pos-enc-args"),
        ({"stride": "5"}, "--task XNLI does not use --stride"),
        ({"task": "xquad", "train_file": "x.json"}, "need --data DIR with the questions"),
        ({"task": "xquad", "data": "recipes"}, "has train-v1.1.json or train.json"),
        ({"task": "xquad", "longest": "40"}, "--longest 40 leaves no room for context"),
        ({"task": "xquad", "train.disable-validation": "true"}, "--keep best needs validation"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(Refused) as error:
        stages(**options)
    assert message in str(error.value)


def error_of(tmp_path: Path, capsys: pytest.CaptureFixture[str], **options: str) -> str:
    """Return the error of a run that must not begin."""
    (tmp_path / "model.pt").write_text("weights")
    options = {
        "checkpoint": str(tmp_path / "model.pt"),
        "data": str(tmp_path),
        "output": str(tmp_path / "out"),
        **options,
    }
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    assert main(FINETUNE_XTREME, ["--preset", "small", *words]) == 2
    assert not (tmp_path / "out").exists()
    return capsys.readouterr().err


def test_files_that_are_not_there_are_refused_before_anything_is_written(folder: Path, capsys: Any) -> None:
    nowhere = "this file or folder does not exist"
    assert f"--train-file none.json: {nowhere}" in error_of(folder, capsys, task="xquad", **{"train-file": "none.json"})
    assert f"--dev-file none.json: {nowhere}" in error_of(folder, capsys, task="xquad", **{"dev-file": "none.json"})
    assert f"--checkpoint {folder}/none.pt: {nowhere}" in error_of(folder, capsys, checkpoint=f"{folder}/none.pt")
    assert "there are no files of MLQA" in error_of(folder, capsys, task="mlqa")
    assert "--languages ar: --data" in error_of(folder, capsys, task="xquad", languages="de,ar")
    assert "has no XNLI files" in error_of(folder, capsys, task="xnli", languages="en,ar")


def test_languages_are_found_by_the_names_that_the_readers_know() -> None:
    named = {(one, name): names for name, how in files.SETS.items() for one in how.languages for names in [how.names]}
    for (language, name), names in named.items():
        for stem in names:
            there = Path(stem.format(code=language, long=files.SETS[name].long.get(language, "")) + ".json.gz")
            assert not without_files([language], [there])
    for split, some in formats.TASKS["XNLI"].files.items():
        assert not without_files([formats.language(split)], [Path(name) for name in some])
    assert without_files(["ar", "de"], [Path("xquad.de.part1.json.gz"), Path("readme.tar.gz")]) == ["ar"]


# --- the tables


def test_the_papers_figures() -> None:
    assert published.figures("XQuAD", parse("shaw"), "input") == (53.9, 69.5)
    assert published.figures("TyDiQA", parse("diet-abs[share=layer-wise,rank=128]"), "head") == (51.5, 64.6)
    assert published.figures("MLQA", parse("m4"), "input") is None
    assert published.figures("MLQA", parse("diet-rel"), "none") is None
    assert published.figures("MLQA", parse("raffel"), "input") is None
    assert published.figures("MLQA", parse("t5"), "input") == (44.3, 59.5)
    assert published.figures("XQuAD", parse("learned+linformer[slots=256]"), "input") == (43.7, 59.1)
    assert published.figures("XQuAD", parse("diet-abs-lin"), "input") is None  # n / 4 = 128 slots


def test_questions_by_language(tmp_path: Path) -> None:
    """Choose the learning rate that is better in English, and report the median of two runs."""
    variant = Variant("", Model("shaw", Path()), "input", "input")
    results = compare.Results(tmp_path, Grid([0.1, 0.2], [3], [1, 2]), ["2 seeds, not 5"])
    points = {**dict.fromkeys(SETS["XQuAD"].languages, 25.0), "en": 30.0, "de": 20.0}
    for lr, english in ((0.1, 50.0), (0.2, 60.0)):
        for seed in (1, 2):
            slug = Trial(variant, lr, 3, seed).slug
            write_json(tmp_path / "scores" / f"{slug}.json", {"f1": english})
            log = tmp_path / "logs" / f"{slug}.train.log"
            log.parent.mkdir(exist_ok=True)
            log.write_text("| INFO | fairseq_cli.train | num. shared model params: 1,234 (num. trained: 1,234)\n")
            scores_by_language = {
                one: {"em": 10.0 * seed, "f1": f1 * seed, "total": 1190} for one, f1 in points.items()
            }
            write_json(tmp_path / "scores" / f"{slug}.xquad.json", scores_by_language)
            for language in scores_by_language:
                write_json(
                    tmp_path / "predictions" / f"{slug}.xquad" / language / "out_of_reach.json", {"x": [language]}
                )
            write_json(tmp_path / ".stages" / f"train.{slug}.done", {"seconds": 60, "command": "c", "commit": "d"})
    full, half = ({"em": score, "f1": score, "total": 1190} for score in (100.0, 33.0))
    write_json(tmp_path / "baselines" / "xquad.json", {one: {"span": half, GOLD: full} for one in points})
    write_json(tmp_path / "checked" / "shaw.input.json", {"pretrained": "shaw", "layers": 12, "dim": 768})
    counts = {one: {"given": 1190, "questions": 1190 - (one == "de")} for one in scores_by_language}
    training = {"train": {"given": 87_599, "questions": 87_599}}
    write_json(tmp_path / "data-bin" / "shaw" / "spans.json", {"splits": training})
    write_json(tmp_path / "data-bin" / "shaw.xquad" / "spans.json", {"splits": counts})
    mean, others, *rows = compare.rows("XQuAD", variant, results)
    assert (mean["language"], others["language"]) == ("mean", "mean but en")
    by_language = {row["language"]: row for row in rows}
    assert set(by_language) == set(points)
    english, german = by_language["en"], by_language["de"]
    assert (mean["EM"], mean["F1"], mean["baseline F1"], mean["beats baseline"]) == (15.0, 37.5, 33.0, True)
    assert (others["F1"], english["F1"], german["F1"]) == (36.75, 45.0, 30.0)
    assert (mean["lr"], mean["F1 of seeds"], german["beats baseline"]) == (0.2, [25.0, 50.0], False)
    assert (mean["paper's EM"], mean["paper's F1"], german["paper's F1"]) == (53.9, 69.5, None)
    assert mean["comparable"] == "no: 1 questions left out of de; 2 seeds, not 5"
    assert (mean["differs"], german["differs"]) == (["1 questions left out of de", "2 seeds, not 5"], None)
    assert german["scores of seeds"] == {"1": {"F1": 20.0, "EM": 10.0}, "2": {"F1": 40.0, "EM": 20.0}}
    assert (mean["out of reach"], german["out of reach"]) == (None, 1)
    assert (mean["parameters"], german["parameters"], mean["seeds"], mean["sd"]) == (1234, 1234, 2, 17.68)
    counts["de"]["given"] = 1000  # not the published set
    write_json(tmp_path / "data-bin" / "shaw.xquad" / "spans.json", {"splits": counts})
    mean, *_ = compare.rows("XQuAD", variant, results)
    assert (mean["paper's F1"], mean["comparable"]) == (None, None)
    counts["de"]["given"] = 1190
    write_json(tmp_path / "data-bin" / "shaw.xquad" / "spans.json", {"splits": counts})
    for path in (tmp_path / "scores").glob("*.xquad.json"):  # a file without answers is predicted but not scored
        write_json(path, {one: scores for one, scores in scores_by_language.items() if one != "zh"})
    mean, *_ = compare.rows("XQuAD", variant, results)
    assert (mean["paper's F1"], mean["comparable"]) == (None, None)


def test_only_all_questions_in_all_languages_have_the_papers_mean() -> None:
    for task, one in SETS.items():
        language = one.languages[-1]
        assert compare.papers_data(task, 87_599, {**one.questions})
        assert not compare.papers_data(task, 400, {**one.questions})
        assert not compare.papers_data(task, 87_599, {**one.questions, language: 10})
        without = {name: number for name, number in one.questions.items() if name != language}
        assert not compare.papers_data(task, 87_599, without)


def test_xnli_by_language(tmp_path: Path) -> None:
    scores = {one: {"accuracy": score} for one, score in (("valid", 90.0), ("test-en", 80.0), ("test-de", 30.0))}
    write_json(
        tmp_path / "baselines" / "XNLI.json", {one: {"accuracy": {"score": 34.0, "margin": 3.0}} for one in scores}
    )
    paper = [{"score": 67.9, "model": "", "segments": ""}]
    row = {"task": "XNLI", "model": "shaw", "scores": xnli.with_means(scores), "paper": paper, "beats baseline": False}
    mean, others, english, german = rows_of_sentences([row], tmp_path)
    assert (mean["language"], mean["score"], mean["paper"], mean["beats baseline"]) == ("mean", 55.0, paper, True)
    assert (others["language"], others["score"], others["paper"]) == ("mean but en", 30.0, None)
    assert (english["language"], english["score"], english["beats baseline"]) == ("en", 80.0, True)
    assert (german["score"], german["baseline"], german["chance"], german["paper"]) == (30.0, 34.0, 33.33, None)
    assert not german["beats baseline"]
    for score, beats in ((36.9, False), (37.1, True)):  # also for means, whose margin is not smaller
        row["scores"] = xnli.with_means({one: {"accuracy": score} for one in scores})
        assert [one["beats baseline"] for one in rows_of_sentences([row], tmp_path)] == [beats] * 4
    row["scores"] = xnli.with_means({one: scores[one] for one in ("valid", "test-en")})
    (alone,) = rows_of_sentences([row], tmp_path)
    assert (alone["language"], alone["score"], alone["paper"]) == ("en", 80.0, paper)


def test_what_is_not_above_the_constant_answer_is_named(tmp_path: Path) -> None:
    """34.34 % of 990 rows is not two standard errors above chance (33.33 %)."""
    facts = {"items": 990, "given": 990, "cut": 0, "unknown": 0, "pieces": 9, "labelled": True}
    record = {"longest": 16, "strange": 0.05, "splits": dict.fromkeys(("train", "valid", "valid-de"), facts)}
    write_json(tmp_path / "data-bin" / "XNLI.shaw" / "glue.json", {**record, "problems": {}})
    constant = {"accuracy": {"score": 33.33, "margin": 3.0}}
    write_json(tmp_path / "baselines" / "XNLI.json", dict.fromkeys(("valid", "valid-de"), constant))
    scores = xnli.with_means({"valid": {"accuracy": 34.34}, "valid-de": {"accuracy": 40.0}})
    row = {"task": "XNLI", "model": "shaw", "score": scores["mean"]["accuracy"], "scores": scores}
    write_json(tmp_path / "comparison.json", [row])
    remarks = FINETUNE_XTREME.remarks(load(FINETUNE_XTREME, "small", texts={"checkpoint": MODEL}), tmp_path)
    assert "These results do not beat the constant answer: shaw in en." in remarks


def test_one_run_has_all_tasks_and_trains_xnli_apart() -> None:
    """The stages of both plans stay as they are, except for checks and tables, which have names of their own."""
    planned = stages("paper", task="xnli,xquad,mlqa,tydiqa", lr="1e-5", seeds="1")
    apart = stages("paper", task="xnli", lr="1e-5", seeds="1") | stages(
        "paper", task="xquad,mlqa,tydiqa", lr="1e-5", seeds="1"
    )
    assert {name for name in apart if name not in planned} == {"check:shaw"}
    assert {name for name in planned if name not in apart} == {"check:XNLI.shaw", "table:XNLI", "table:questions"}
    assert len([name for name in planned if name.startswith("train:")]) == 2
    compare = planned["compare"]
    assert [stage.name for stage in compare.after] == ["table:XNLI", "table:questions"]
    outputs = [output for stage in planned.values() for output in stage.outputs]
    assert len(set(outputs)) == len(outputs)


def of_xnli(score: float) -> Row:
    """Return the score of two training runs, whose median is `score`."""
    by_seed = {"1": score - 7, "2": score + 7}
    return {"score": score, "scores of seeds": {seed: {"mean": {"accuracy": each}} for seed, each in by_seed.items()}}


def of_questions(f1: float, exact: float) -> Row:
    """Return the scores of two training runs and of one more, which diverged on XNLI."""
    by_seed = {"3": {"F1": 0.0, "EM": 0.0}, "2": {"F1": f1, "EM": exact}, "1": {"F1": f1, "EM": exact + 7}}
    return {"F1": f1, "EM": exact, "scores of seeds": by_seed}


def test_the_average_is_that_of_seven_numbers() -> None:
    """Recompute an average of DIET's Table 3 from its seven numbers."""
    numbers = {"XNLI": (67.9,), "XQuAD": (69.5, 53.9), "MLQA": (58.2, 43.1), "TyDiQA": (64.8, 49.9)}
    common = {"model": "shaw", "language": "mean", "pretrained": {"encoding": "shaw"}}
    rows: list[Row] = [
        {
            "task": task,
            **common,
            "paper" if task == "XNLI" else "paper's F1": scores[0],
            **(of_xnli(*scores) if task == "XNLI" else of_questions(*scores)),
            "differs": ["2 seeds, not 5"],
        }
        for task, scores in numbers.items()
    ]
    row = join.average(rows, list(numbers), "shaw", "input")
    assert row is not None
    assert (round(row["score"], 1), row["paper"], row["of"]) == (58.2, 58.2, "7 numbers")
    assert row["comparable"] == "no: 2 seeds, not 5"
    seven = 407.3  # sum of the numbers
    assert row["score of seeds"] == [round(total / 7, 4) for total in (seven - 7 + 21, seven + 7)]
    assert (row["mean"], row["sd"], row["seeds"]) == (round((seven + 10.5) / 7, 2), 0.71, 2)
    partial = join.average(rows, ["XNLI", "MLQA"], "shaw", "input")
    assert partial is not None
    assert (partial["of"], partial["paper"]) == ("3 numbers", None)
    assert partial["comparable"] == "no: no score on XQuAD, TyDiQA; 2 seeds, not 5"
    for other in rows:  # a task with other data than the paper's
        replaced = [{**row, "paper": None, "paper's F1": None} if row is other else row for row in rows]
        average = join.average(replaced, list(numbers), "shaw", "input")
        assert average is not None
        assert average["paper"] is None
        assert average["comparable"] == f"no: other data than the paper's ({other['task']}); 2 seeds, not 5"
    assert join.average([{**row, "score": None} for row in rows], list(numbers), "shaw", "input") is None
