"""Test the GLUE recipe: its plan, the papers' protocols, and what is refused."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from glue import formats, reading
from support_glue import FILES, task_files
from support_recipes import Planned, value

from recipes.finetune_glue.__main__ import FINETUNE_GLUE
from recipes.finetune_glue.settings import Settings
from recipes.lib import scheduled
from recipes.lib.command import main
from recipes.lib.encodings import parse
from recipes.lib.finetuning.models import models
from recipes.lib.finetuning.sentences import builtin
from recipes.lib.finetuning.sentences.published import paper
from recipes.lib.finetuning.sentences.settings import files_that_count
from recipes.lib.finetuning.sentences.tasks import GLUE, TASKS
from recipes.lib.recipe import ROOT
from recipes.lib.settings import read_preset
from recipes.lib.values import Refused

ABLATIONS = [name for name in FINETUNE_GLUE.presets() if "smoke" not in name and name not in ("small", "paper")]


def needed(preset: str) -> dict[str, str]:
    return {"checkpoint": "builtin" if preset == "smoke" else "some/m4/checkpoint_last.pt"}


PLANNED = Planned(FINETUNE_GLUE, "paper", needed=needed)
settings, stages = PLANNED.settings, PLANNED.stages


def run_folder(folder: Path, *labels: str) -> Path:
    """Write a folder such as a run of recipes/pretrain_mlm leaves behind."""
    folder.mkdir(parents=True)
    (folder / "comparison.json").write_text(json.dumps([{"encoding": label} for label in labels]))
    for label in labels:
        place = folder / "checkpoints" / parse(label).slug
        place.mkdir(parents=True)
        (place / "checkpoint_last.pt").write_text(label)
    return folder


# --- the plan


def test_tasks_are_the_readers() -> None:
    assert set(TASKS) == set(formats.TASKS) == {*FILES, "XNLI"} == set(builtin.COLUMNS)
    for name, task in TASKS.items():
        form = formats.TASKS[name]
        assert (task.pair, task.classes) == (len(form.sentences) == 2, len(form.labels) or 1)
        if name in GLUE:
            assert set(task.submissions) == {split for split in form.files if split.startswith("test")}


def test_the_smoke_preset_brings_its_own_model_and_rows() -> None:
    plan = stages("smoke")
    assert [name.partition(":")[0] for name in plan] == [
        *("pretrain", "builtin", "check", "prepare", "baseline", "train", "evaluate", "compare")
    ]
    train = plan["train:SST-2.learned.lr0.003.e3.s1"]
    assert value(train, "--pretrained").endswith("pretrained/checkpoints/learned/checkpoint_last.pt")
    assert "fairseq-train" in train.command


#: Settings of BERT, where the papers M1-M4 and DIET do not state others, and settings of RoBERTa.
BERT = {"optimizer": "adam", "adam-betas": "(0.9, 0.999)", "adam-eps": 1e-6, "weight-decay": 0.01, "clip-norm": 1.0}
BERT |= {"lr-scheduler": "polynomial_decay", "dropout": 0.1, "attention-dropout": 0.1, "pooler-dropout": 0.1}
ROBERTA = {name: value for name, value in BERT.items() if name != "pooler-dropout"}
ROBERTA |= {"adam-betas": "(0.9, 0.98)", "weight-decay": 0.1, "clip-norm": 0.0}
CHECKPOINTS = {"validate-interval-updates": 3500, "save-interval-updates": 3500}  # Chen et al. 2021 (DIET), Table 7
GOES_ON = {"validate-interval-updates": 2000, "save-interval-updates": 2000}  # an epoch of MNLI has 12,000 updates


@pytest.mark.parametrize(
    ("protocol", "lr", "epochs", "seeds", "longest", "warmup", "keep", "segments", "separators", "train"),
    [
        ("m1-m4", [3e-5], [3], 1, 128, 0.1, "last", "none", 1, {**BERT, **GOES_ON}),
        ("m4m", [2e-5, 3e-5, 4e-5], [3], 1, 512, 0.06, "last", "none", 2, {**ROBERTA, **GOES_ON}),
        ("diet", [1e-5, 2e-5, 3e-5, 4e-5], [5, 10], 5, 128, 0.1, "best", "input", 1, {**BERT, **CHECKPOINTS}),
        ("diet-xtreme", [1e-5, 2e-5, 3e-5, 4e-5], [3], 5, 512, 0.1, "best", "input", 1, {**BERT, **CHECKPOINTS}),
    ],
)
def test_the_papers_protocols(
    protocol: str,
    lr: list[float],
    epochs: list[int],
    seeds: int,
    longest: int,
    warmup: float,
    keep: str,
    segments: str,
    separators: int,
    train: dict[str, Any],
) -> None:
    """Values that the papers do not state are those of BERT or RoBERTa."""
    loaded = settings(protocol=protocol)
    assert (loaded.lr, loaded.epochs, len(loaded.training_seeds.seeds), loaded.batch) == (lr, epochs, seeds, 32)
    assert (loaded.longest, loaded.warmup, loaded.keep) == (longest, warmup, keep)
    assert (loaded.segments, loaded.separators, loaded.train) == ([segments], separators, train)
    trains = [name for name in stages(protocol=protocol, task="CoLA") if name.startswith("train:")]
    assert len(trains) == len(lr) * len(epochs) * seeds


def test_no_warm_up_is_not_the_protocols() -> None:
    assert settings(warmup="0").warmup == 0


def test_a_training_is_fairseqs() -> None:
    plan = stages(protocol="diet", task="STS-B", segments="head", lr="1e-5", epochs="5", seeds="1")
    (train,) = [stage for stage in plan.values() if stage.kind == "train"]
    assert train.name == "train:STS-B.m4.head.lr1e-05.e5.s1"
    expected = {"--task": "posenc_sentence_prediction", "--num-classes": "1", "--metrics": "spearman,pearson"}
    expected |= {"--segments": "head", "--lr": "1e-05", "--batch-size": "32", "--max-epoch": "5", "--warmup": "0.1"}
    assert {flag: value(train, flag) for flag in expected} == expected
    assert value(train, "--best-checkpoint-metric") == "score"
    assert {"--regression-target", "--maximize-best-checkpoint-metric"} <= set(train.command)
    assert "--separator-token" not in train.command
    assert value(plan["evaluate:STS-B.m4.head.lr1e-05.e5.s1"], "--checkpoint").endswith("checkpoint_best.pt")
    assert value(stages(protocol="m4m", task="RTE")["train:RTE.m4.lr2e-05.e3.s1"], "--separator-token") == "2"


def test_single_sentences_have_no_segments() -> None:
    plan = stages(task="CoLA,RTE", segments="input,head")
    trains = [name for name in plan if name.startswith("train:")]
    assert trains == [f"train:{name}.lr3e-05.e3.s1" for name in ("CoLA.m4", "RTE.m4.input", "RTE.m4.head")]
    variants = settings(task="CoLA,RTE", segments="input,head").variants()
    assert [(one.segments, one.row) for one in variants] == [
        ("none", "input/head"),
        ("input", "input"),
        ("head", "head"),
    ]


def test_models_are_checkpoints_runs_and_folders(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run", "shaw", "m4[clip=8]")
    imported_folder = tmp_path / "bert-m4"
    imported_folder.mkdir()
    (imported_folder / "checkpoint.pt").write_text("")
    loaded = models([str(run), str(imported_folder), "not/there/m3/checkpoint_last.pt"])
    assert [model.label for model in loaded] == ["shaw", "m4[clip=8]", "bert-m4", "m3"]
    assert loaded[1].path == run / "checkpoints" / "m4.clip=8" / "checkpoint_last.pt"
    own = models(["models/shaw.pt", "models/m4.clip=8.pt", "roberta.base/model.pt", "gone/checkpoint_1_500.pt"])
    assert [model.label for model in own] == ["shaw", "m4.clip=8", "roberta.base", "gone"]
    with pytest.raises(Refused, match="another model of --checkpoint also has the name shaw"):
        models([str(run), str(loaded[0].path)])
    with pytest.raises(Refused, match=r"neither a run of recipes/pretrain_mlm nor"):
        models([str(tmp_path)])


@pytest.mark.parametrize("preset", ABLATIONS)
def test_an_ablation_names_its_pretraining_and_finds_its_models(preset: str, tmp_path: Path) -> None:
    preset_values = read_preset(FINETUNE_GLUE.conf / f"{preset}.toml")
    with pytest.raises(Refused, match=r"Pretrain a model with this encoding: recipes/pretrain_mlm/run\.sh --preset"):
        settings(preset)
    run = run_folder(tmp_path / "run", "none", *reversed(preset_values["pos-enc"]))
    loaded = settings(preset, checkpoint=str(run))
    assert [model.label for model in loaded.models] == preset_values["pos-enc"]
    rows = {
        (one.model.label, one.row): tuple(
            paper(loaded.protocol, parse(one.model.label), kind, task) for kind in one.row.split("/") for task in TASKS
        )
        for one in loaded.variants()
    }
    if preset == "clip":  # the paper varies k on SQuAD; its M4 without a clip is in the table of GLUE
        assert [label for (label, _), row in rows.items() if any(row)] == ["m4[clip=512]"]
    elif preset == "divergence":  # the paper has no numbers, because fine-tuning diverged
        assert not any(map(any, rows.values()))
    else:  # each encoding has its own number
        assert all(map(any, rows.values()))
        assert len(set(rows.values())) == len(rows)
    encodings = shlex.quote(",".join(preset_values["pos-enc"]))
    assert loaded.pretrain_command == f"{preset_values['pretraining']} --pos-enc {encodings}"
    check = next(iter(stages(preset, checkpoint=str(run)).values()))
    assert value(check, "--pos-enc") == preset_values["pos-enc"][0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "MLNI"}, "--task: unknown value 'MLNI'.* did you mean MNLI"),
        ({"protocol": "m5"}, "--protocol: there is no protocol 'm5'"),
        ({"segments": "heads"}, "--segments: unknown value 'heads'.* did you mean head"),
        ({"data": "no-such"}, "--data no-such: the folder does not exist. Give a folder, glue or builtin"),
        ({"checkpoint": "builtin,x.pt"}, "--checkpoint builtin: the recipe pretrains these models itself"),
        ({"train__lr": "1"}, "use --lr"),
        ({"train__arch": "x"}, "use --checkpoint"),
        ({"train__batch-size": "3"}, "use --batch"),
        ({"train__warmup-updates": "3"}, "use --warmup"),
        ({"train__no-save": "true"}, "later stages read the checkpoints"),
        ({"train__no-last-checkpoints": "true"}, "later stages read the checkpoints"),
        ({"train__keep-interval-updates": "3"}, "the best and the last checkpoint are kept"),
        ({"train__valid-subset": "test"}, "use --data"),
        ({"protocol": "diet", "train__disable-validation": "true"}, "--keep best needs validation"),
        ({"warmup": "1.5"}, "--warmup 1.5: "),
        ({"separators": "3"}, "--separators 3: .* 1 or 2"),
        ({"epochs": "0"}, "--epochs: every value must be greater than 0"),
        ({"lr": "1e-5,0"}, "--lr: every value must be greater than 0"),
        ({"lr": "1e-5,0.00001"}, "--lr .* a value occurs twice"),
        ({"epochs": "3,5,3"}, "--epochs 3,5,3: a value occurs twice"),
        ({"train_rows": "5"}, "--train-rows is only for --data DIR"),
        ({"data": "builtin", "raw": "x"}, "--raw has no effect: nothing is fetched"),
        ({"batches": "3"}, "--batch 32 must be a multiple of --batches 3"),
        ({"task": "RTE,RTE"}, "--task RTE,RTE: a value occurs twice"),
    ],
)
def test_what_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(Refused, match=message):
        stages(**options)


def test_files_that_are_not_there_are_refused_before_anything_is_written(tmp_path: Path, capsys: Any) -> None:
    task_files(tmp_path / "glue" / "RTE", "RTE")
    (tmp_path / "there.pt").write_text("weights")
    rows, there, nowhere = str(tmp_path / "glue"), str(tmp_path / "there.pt"), str(tmp_path / "nowhere")

    def error_of(*words: str) -> str:
        output = ["--preset", "small", "--output", str(tmp_path / "out")]
        assert main(FINETUNE_GLUE, [*output, "--data", rows, *words]) == 2
        return capsys.readouterr().err

    models = ["--checkpoint", f"{there},{nowhere}"]
    assert error_of("--task", "RTE", *models) == f"error: --checkpoint {nowhere}: this file or folder does not exist.\n"
    tokenizer = ["--checkpoint", there, "--tokenizer-path", nowhere]
    problem = f"error: --tokenizer-path {nowhere}: this file or folder does not exist.\n"
    assert error_of("--task", "RTE", *tokenizer) == problem
    assert f"--data {rows}: there are no files of MNLI" in error_of("--task", "RTE,MNLI", "--checkpoint", there)
    assert not (tmp_path / "out").exists()
    assert main(FINETUNE_GLUE, ["--task", "RTE", "--data", rows, *models, "--list"]) == 0


def test_where_rows_and_models_lie_does_not_count(tmp_path: Path) -> None:
    def keys(place: Path) -> dict[str, str]:
        plan = stages(task="RTE", data=str(place), checkpoint=str(place / "m4" / "checkpoint_last.pt"))
        return {name: stage.key() for name, stage in plan.items()}

    for name in ("a", "b"):
        task_files(tmp_path / name / "RTE", "RTE")
        (tmp_path / name / "m4").mkdir()
        (tmp_path / name / "m4" / "checkpoint_last.pt").write_text("weights")
    old = keys(tmp_path / "a")
    assert old == keys(tmp_path / "b")
    task_files(tmp_path / "b" / "RTE", "RTE", dev=FILES["RTE"]["dev.tsv"][:1])
    assert {name for name, key in keys(tmp_path / "b").items() if key == old[name]} == {"check:m4"}
    (tmp_path / "a" / "m4" / "checkpoint_last.pt").write_text("other weights")
    assert not [name for name, key in keys(tmp_path / "a").items() if key == old[name]]


@pytest.mark.parametrize("task", formats.TASKS)
def test_rows_count_wherever_the_reader_finds_them(task: str, tmp_path: Path) -> None:
    """Look in the folder of the task, in the folders of unpacked archives, and in the given folder, also for AX."""
    form = formats.TASKS[task]
    for number, place in enumerate((task, *form.folders, ".")):
        folder = tmp_path / str(number) / "glue_data"
        names = [folder / place / some[number % len(some)] for split, some in form.files.items() if split != formats.AX]
        names += [(folder.parent / "AX.tsv", folder / "diagnostic" / "diagnostic.tsv.gz")[number % 2]]
        for path in names:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
        read_files = set(reading.find(folder, task, form).values())
        assert len(read_files) == len({*names}) - (task != "MNLI")
        assert read_files <= {*files_that_count(folder, task)}


def test_what_the_user_names_is_found_from_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths of the user become relative to the repository, where commands run; another tokenizer makes other pieces."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    plan = stages(task="RTE", tokenizer_path="tokenizer.json", raw="corpora")
    prepare, check = plan["prepare:RTE.m4"], plan["check:m4"]
    assert {value(stage, "--tokenizer-path") for stage in (prepare, check)} == {str(tmp_path / "tokenizer.json")}
    assert tmp_path / "tokenizer.json" in {*prepare.inputs} & {*check.inputs}
    assert value(prepare, "--raw") == str(tmp_path / "corpora")
    assert value(stages(task="RTE")["prepare:RTE.m4"], "--raw") == "data/raw"


def test_another_experiment_has_another_folder() -> None:
    runs = [f"{run}/checkpoints/m4/checkpoint_last.pt" for run in ("a", "b")] + ["models/shaw.pt", "models/m2.pt"]
    options: list[dict[str, str]] = [{"checkpoint": run} for run in runs]
    options += [{"segments": "head"}, {"protocol": "diet"}, {"task": "RTE"}, {"seed": "2"}, {"preset": "small"}, {}]
    named = {FINETUNE_GLUE.folder(settings(**words)) for words in options}
    assert len(named) == len(options), named


def test_help_says_that_0_is_unset() -> None:
    help_texts = {one.name: one.metadata.get("help", "") for one in fields(Settings)}
    for name in ("batch", "longest", "separators"):
        assert help_texts[name].endswith("(0 or unset: as in the protocol).")


EVERY_9 = {"train__save-interval-updates": "9"}


def test_what_departs_from_the_protocol_is_told() -> None:
    assert settings().departures() == []
    loaded = settings("small", seeds="1,2,3,4,5", train__dropout="0.2", segments="head").departures()
    assert loaded == ["--lr 0.0003, not 3e-05", "--train.dropout 0.2, not 0.1", "5 seeds, not 1"]
    last, best = (settings(protocol=name, **EVERY_9) for name in ("m4m", "diet"))
    assert last.departures() == []
    assert best.departures() == ["--train.save-interval-updates 9, not 3500"]  # DIET, Table 7
    assert settings(protocol="diet", keep="last", **EVERY_9).departures() == ["--keep last, not best"]
    assert settings(**{"train__disable-validation": "true"}).departures() == []
    compare = stages("small")["compare"]
    assert value(compare, "--differs") == "--lr 0.0003, not 3e-05"


def test_a_dry_run_prints_every_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "recipes.finetune_glue", "--preset", "paper", "--task", "MNLI", "--dry-run"]
    command += ["--checkpoint", "some/m4/checkpoint_last.pt", "--protocol", "m4m", "--output", str(tmp_path)]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert process.stdout.count("fairseq-train") == 3
    assert not list(tmp_path.iterdir())


# --- schedules


def test_the_schedule_is_of_updates() -> None:
    flags = scheduled.schedule(items=100, batch=32, epochs=3, warmup=0.1)
    assert flags == ["--max-update", "12", "--total-num-update", "12", "--warmup-updates", "1"]
