"""Test the SQuAD recipe: its plan, what is refused, the papers' numbers, and its table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support_recipes import OUTPUT, Planned, value

from recipes.finetune_squad import compare, published
from recipes.finetune_squad.__main__ import FINETUNE_SQUAD
from recipes.lib.command import main
from recipes.lib.encodings import parse
from recipes.lib.finetuning.questions.files import GOLD
from recipes.lib.reported import text
from recipes.lib.seeds import Seeds
from recipes.lib.settings import read_preset
from recipes.lib.stages import Stage
from recipes.lib.values import Refused

PAPERS = [name for name in FINETUNE_SQUAD.presets() if name.startswith("m")]
ABLATIONS = ["clip", "heads", "scale", "divergence", "m4m-small-slower"]
MODEL = "/models/m4.clip=256/checkpoint_last.pt"


def needed(preset: str) -> dict[str, str]:
    return {} if preset == "smoke" else {"checkpoint": MODEL, **({"pos_enc": ""} if preset in ABLATIONS else {})}


PLANNED = Planned(FINETUNE_SQUAD, needed=needed)
settings, stages = PLANNED.settings, PLANNED.stages


# --- the plan


@pytest.mark.parametrize("preset", FINETUNE_SQUAD.presets())
def test_every_preset_plans_every_stage(preset: str) -> None:
    plan = stages(preset)
    kinds = list(dict.fromkeys(name.partition(":")[0] for name in plan))
    first = ["builtin", "pretrain"] if preset == "smoke" else ["fetch"]
    assert kinds == [*first, "check", "prepare", "baselines", "train", "predict", "score", "compare"]


#: Settings of Hugging Face's run_squad.py.
ADAM = {"optimizer": "adam", "adam-betas": "(0.9, 0.999)", "adam-eps": 1e-8, "weight-decay": 0.0, "clip-norm": 1.0}
REST = {"lr": 3e-5, "dropout": 0.1, "attention-dropout": 0.1}


@pytest.mark.parametrize("preset", PAPERS)
def test_the_papers_numbers(preset: str) -> None:
    """BERT has one separator between question and context, RoBERTa two."""
    loaded = settings(preset)
    assert loaded.separators == (1 if preset.startswith("m1-m4") else 2)
    rate = 2.5e-5 if preset.endswith("-slower") else 3e-5
    assert (ADAM | REST | {"lr": rate}).items() <= loaded.train.items()
    assert (loaded.longest_question, loaded.longest_answer) == (64, 30)
    assert (loaded.epochs, loaded.stride, loaded.train["lr"], loaded.warmup) == (2, 128, rate, 0)
    assert loaded.number("batch-size", 0) * loaded.batches == 48
    *_, last = preset.split("-")
    assert loaded.max_length == (int(last) if last.isdigit() and len(last) == 3 else 512)
    assert loaded.paper == preset.removesuffix(f"-{loaded.max_length}")
    assert loaded.departures() == []


@pytest.mark.parametrize(("preset", "like"), [("clip", "m1-m4"), ("scale", "m4m-small"), ("heads", "m4m-small")])
def test_an_ablation_is_its_papers_protocol_on_models_of_their_own(preset: str, like: str, tmp_path: Path) -> None:
    preset_values = read_preset(FINETUNE_SQUAD.conf / f"{preset}.toml")
    with pytest.raises(Refused, match=r"with this encoding: recipes/pretrain_mlm/run\.sh --preset"):
        settings(preset, pos_enc=preset_values["pos-enc"][0])
    places = [
        f"/run/checkpoints/{parse(label).slug}/checkpoint_last.pt" for label in reversed(preset_values["pos-enc"])
    ]
    loaded = settings(preset, checkpoint=",".join(places), pos_enc=",".join(preset_values["pos-enc"]))
    assert (
        f"Pretrain the models of this preset with: {loaded.pretrain_command}"
        in FINETUNE_SQUAD.plan(loaded, OUTPUT, "out").notes
    )
    assert [model.label for model in loaded.models] == preset_values["pos-enc"]
    assert loaded.paper == like
    assert loaded.departures() == []
    for label in preset_values["pos-enc"]:
        assert label in loaded.pretrain_command
        assert published.figures(like, "1.1", 512, label)[1], label


def test_what_departs_from_the_papers_protocol() -> None:
    loaded = settings("m4m", epochs="3", stride="64", train__lr="1e-4", batches="4")
    assert loaded.departures() == [
        *("--epochs 3, not 2", "--stride 64, not 128", "--train.lr 0.0001, not 3e-05"),
        "24 windows per update, not 48",
    ]
    (stage,) = (one for one in stages("m4m", warmup="0.1").values() if one.kind == "compare")
    assert value(stage, "--differs") == "--warmup 0.1, not 0"
    assert "--differs" not in stages("m4m", batches="16", **{"train__batch-size": "3"})["compare"].command


def figures(paper: str, version: str, longest: int, label: str) -> tuple[str, str]:
    """Return the paper's EM and F1 as the report shows them."""
    exact, f1 = published.figures(paper, version, longest, label)
    return text(exact), text(f1)


def test_the_papers_figures() -> None:
    assert figures("m1-m4", "1.1", 512, "m4[clip=2]") == ("82.17", "89.19")
    assert figures("m1-m4", "1.1", 640, "m4[clip=256]") == ("83.97", "90.68")
    assert figures("m1-m4", "1.1", 384, "m4") == ("", "90.34")
    assert figures("m1-m4", "1.1", 512, "m4[clip=512]") == ("83.63", "90.53")
    assert figures("m1-m4-large", "1.1", 576, "m4+segments-input") == ("87.4", "93.48")
    assert figures("m4m-small", "1.1", 512, "learned+m4m") == ("", "88.68")
    for arguments in (("m1-m4", "1.1", 512, "t5"), ("m1-m4", "2.0", 512, "m4"), ("none", "1.1", 512, "m4")):
        assert figures(*arguments) == ("", "")


def test_figures_of_several_models_of_an_encoding_are_named() -> None:
    """A checkpoint does not say whether it is RoBERTa or started from RoBERTa."""
    learned = ("86.1; 85.95 (roberta-base itself)", "92.31; 92.12 (roberta-base itself)")
    assert figures("m4m", "1.1", 512, "learned") == learned
    assert figures("m4m", "2.0", 512, "m4m") == ("80.88; 81.65 (on C4)", "84; 84.51 (on C4)")
    large = ("84.66 (roberta-large itself)", "87.62 (roberta-large itself)")
    assert figures("m4m-large", "2.0", 512, "learned") == large
    assert figures("m1-m4", "1.1", 512, "learned+segments-input") == ("80.8 (BERT)", "88.5 (BERT)")
    large = figures("m1-m4-large", "1.1", 512, "learned+segments-input")
    assert large == ("86.91; 84.1 (BERT)", "93.15; 90.9 (BERT)")
    assert figures("m1-m4", "1.1", 512, "m4[share=none]") == ("83.63", "90.53")  # the form that the paper prints


def test_papers_have_figures_of_their_lengths_only() -> None:
    """Numbers are shown only for the lengths at which the paper scored this model, even if another model has more."""
    papers = published.PAPERS
    lengths = {paper: [n for n in (384, 512, 704) if published.has_figures(paper, "1.1", n)] for paper in papers}
    of_512 = {paper: [512] for paper in papers if paper.startswith("m4m")}
    assert lengths == {"m1-m4": [384, 512, 704], "m1-m4-large": [512, 704], **of_512}
    assert [paper for paper in papers if published.has_figures(paper, "2.0", 512)] == ["m4m", "m4m-large"]


def test_other_sizes_and_questions_are_not_comparable() -> None:
    base = {"layers": 12, "dim": 768}
    assert published.differences("m1-m4", "1.1", base, (87_599, 10_570)) == []
    differences = published.differences("m1-m4", "2.0", {"layers": 4, "dim": 128}, (11_877, 4961))
    assert differences[0] == "4 layers of width 128, not 12 of width 768"
    assert differences[1] == "11,877 and 4,961 training and development questions, not 130,319 and 11,873"
    assert published.differences("none", "1.1", {"layers": 1, "dim": 8}, (1, 1)) == []
    (left,) = published.differences("m1-m4", "1.1", base, (87_599, 10_570), (87_590, 10_570))
    assert left == "9 and 0 training and development questions left out"


def test_squad_is_fetched_and_trained_for_epochs() -> None:
    plan = stages("m1-m4", version="2.0")
    assert plan["fetch"].command[2:4] == ("squad/train-v2.0.json", "squad/dev-v2.0.json")
    prepare = plan["prepare:m4.clip=256"]
    assert value(prepare, "--train") == "data/raw/squad/train-v2.0.json"
    assert (value(prepare, "--version"), value(prepare, "--longest"), value(prepare, "--stride")) == (
        "2.0",
        "512",
        "128",
    )
    train = plan["train:m4.clip=256"]
    assert train.command[:3] == ("python", "-m", "recipes.lib.scheduled")
    assert (value(train, "--epochs"), value(train, "--batch")) == ("2", "48")
    assert "fairseq-train" in train.command
    assert (value(train, "--task"), value(train, "--criterion")) == ("posenc_squad", "squad")
    assert value(train, "--pretrained") == MODEL
    assert value(train, "--lr-scheduler") == "polynomial_decay"
    assert "--max-positions" not in train.command
    assert value(plan["predict:m4.clip=256"], "--null-threshold") == "0.0"
    assert "--null-threshold" not in stages("m1-m4")["predict:m4.clip=256"].command


def test_what_is_added_to_the_models_own_encoding() -> None:
    plan = stages(pos_enc_args="extend=interpolate,extend_to=576", max_length="576", segments="head")
    for stage in (plan["train:m4.clip=256"], plan["check:m4.clip=256"]):
        assert value(stage, "--pos-enc-args") == "extend=interpolate,extend_to=576"
        assert value(stage, "--segments") == "head"
    assert value(plan["check:m4.clip=256"], "--max-length") == "576"


def test_own_questions_count_not_where_they_lie(tmp_path: Path) -> None:
    def stages_in(name: str, text: str, model: str = "x") -> dict[str, Stage]:
        folder = tmp_path / name
        (folder / "learned").mkdir(parents=True, exist_ok=True)
        (folder / "train-v1.1.json.gz").write_text(text)
        (folder / "dev.json").write_text("dev")
        (folder / "learned" / "checkpoint_last.pt").write_text(model)
        return stages(data=str(folder), checkpoint=str(folder / "learned" / "checkpoint_last.pt"))

    first, moved = stages_in("a", "same"), stages_in("b", "same")
    assert "fetch" not in first
    assert value(first["prepare:learned"], "--train") == str(tmp_path / "a" / "train-v1.1.json.gz")
    for name in ("check:learned", "prepare:learned", "train:learned", "score:learned", "compare"):
        assert first[name].key() == moved[name].key(), name
    changed = stages_in("b", "changed")
    assert changed["check:learned"].key() == first["check:learned"].key()
    assert changed["train:learned"].key() != first["train:learned"].key()
    assert stages_in("b", "same", "y")["check:learned"].key() != first["check:learned"].key()


def test_what_decides_a_stage_is_among_its_inputs() -> None:
    """The inputs are the script and the modules of the package that it imports."""
    pieces = {"span_items.py", "span_pieces.py", "question_pieces.py", "byte_pieces.py"}
    expected = {
        "prepare": {"prepare_spans.py", "pipeline.py", *pieces},
        "predict": {"predict.py", "answers.py", "span_search.py", "null_threshold.py"},
        "score": {"score.py", "scores.py", "squad.py", "null_threshold.py"},
        "baselines": {"baselines.py", "scores.py", "squad.py", "question_pieces.py"},
        "compare": {"compare.py", "published.py", "encodings.py", "m1-m4_table2.toml", "m4m_table6.toml"},
    }
    inputs_by_kind = {stage.kind: {path.name for path in stage.inputs if path.exists()} for stage in stages().values()}
    for kind, names in expected.items():
        assert names <= inputs_by_kind[kind], kind


def test_paths_are_the_users_and_a_tokenizer_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "vocab.txt").write_text("a")
    options = {"tokenizer_path": "cut", "raw": "sets"}
    plan = stages(**options)
    assert value(plan["prepare:m4.clip=256"], "--tokenizer-path") == str(tmp_path / "cut")
    assert value(plan["prepare:m4.clip=256"], "--train") == str(tmp_path / "sets" / "squad" / "train-v1.1.json")
    assert value(plan["fetch"], "--output") == str(tmp_path / "sets")
    key = plan["prepare:m4.clip=256"].key()
    (tmp_path / "cut" / "vocab.txt").write_text("other")
    assert plan["prepare:m4.clip=256"].key() != key
    assert value(stages(tokenizer_path="words")["prepare:m4.clip=256"], "--tokenizer-path") == "words"


def test_the_tokenizer_beside_a_checkpoint_counts(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for folder in (run / "checkpoints" / "shaw", run / "data" / "tokenizer"):
        folder.mkdir(parents=True)
    checkpoint = run / "checkpoints" / "shaw" / "checkpoint_last.pt"
    checkpoint.write_text("")
    keys = []
    for content in ("a", "b"):
        (run / "data" / "tokenizer" / "vocab.txt").write_text(content)
        keys.append(stages(checkpoint=str(checkpoint))["prepare:shaw"].key())
    assert keys[0] != keys[1]


def test_the_built_in_models_are_pretrained_first() -> None:
    plan = stages("smoke")
    assert value(plan["pretrain"], "--pos-enc") == "learned,shaw"
    assert value(plan["train:shaw"], "--pretrained").endswith("/pretrained/checkpoints/shaw/checkpoint_last.pt")
    assert value(plan["prepare:shaw"], "--limit") == "600"
    own = stages("smoke", train_file="/q/train.json", dev_file="/q/dev.json.gz", version="2.0")
    assert list(own)[:3] == ["builtin", "pretrain", "check:learned"]
    assert value(own["prepare:learned"], "--eval") == "/q/dev.json.gz"
    assert list(stages("smoke", checkpoint=MODEL))[:2] == ["builtin", "check:m4.clip=256"]


def test_results_of_other_questions_lie_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("{}")
    options: list[dict[str, str]] = [{}, {"data": str(tmp_path / "mine.json")}]
    options += [{"train_file": "a/train.json.gz", "dev_file": "a/dev.json"}]
    folders = [FINETUNE_SQUAD.folder(settings(**one)) for one in options]
    models = MODEL.split("/")[-2]
    assert folders == [f"finetune_squad/small.{name}.{models}.1.1.128.1" for name in ("squad", "mine", "train")]
    options = [{}, {"segments": "head"}, {"checkpoint": "/b/run/checkpoints/shaw/checkpoint_last.pt"}]
    papers = ("m1-m4", "m4m", "m4m-small", "clip")
    names = [FINETUNE_SQUAD.folder(settings(preset, **one)) for one in options for preset in papers]
    assert len(set(names)) == 12
    assert names[-1].startswith("finetune_squad/clip.squad.run.shaw.")
    many = ",".join(f"/a/model-number-{one}" for one in range(20))
    assert len(FINETUNE_SQUAD.folder(settings(checkpoint=many))) < 120


def test_nothing_has_to_be_there_for_a_dry_run(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--preset", "m4m", "--version", "2.0", "--checkpoint", "/nowhere/m4m/checkpoint_last.pt", "--dry-run"]
    assert main(FINETUNE_SQUAD, words) == 0
    printed = capsys.readouterr().out
    assert "# An update consists of 48 windows of up to 512 pieces." in printed
    assert "# train:m4m\npython -m recipes.lib.scheduled" in printed


def test_a_lone_file_is_split_by_article(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("{}")
    prepare = stages(data=str(tmp_path / "mine.json"), seed="3", version="2.0")["prepare:m4.clip=256"]
    assert (value(prepare, "--text"), value(prepare, "--seed")) == (str(tmp_path / "mine.json"), "3")
    assert "--train" not in prepare.command


# --- what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checkpoint": "builtin,x.pt"}, "--checkpoint builtin: the recipe pretrains these models itself"),
        ({"train_file": "x.json"}, "--train-file and --dev-file must be given together"),
        ({"train_file": "x.json", "dev_file": "y.json", "data": "mine"}, "both name questions"),
        ({"train_file": "x.json", "dev_file": "./x.json"}, "--train-file and --dev-file are the same file, x.json"),
        ({"data": "builtin", "version": "2.0"}, "Use --version 1.1"),
        ({"data": "nowhere"}, "--data nowhere: the file does not exist"),
        ({"version": "1.0"}, "must be 1.1 or 2.0"),
        ({"max_length": "44"}, "leaves no room for context after a question of --longest-question 40"),
        ({"warmup": "1"}, "--warmup 1.0: the fraction of updates"),
        ({"epochs": "0"}, "--epochs 0: the value must be at least 1"),
        ({"null_threshold": "1"}, "--null-threshold is only for --version 2.0"),
        ({"train__max-update": "5"}, "--train.max-update: the recipe sets this flag itself. Instead use --epochs"),
        ({"train__pos-enc": "shaw"}, "--train.pos-enc: the recipe sets this flag itself. Instead use --checkpoint"),
        ({"train__max-positions": "600"}, "--max-length, the maximum length of a window"),
        ({"train__batch-size": "0"}, "--train.batch-size is missing"),
        ({"data": "builtin", "raw": "x"}, "--raw has no effect: nothing is fetched"),
        ({"train_file": "x", "dev_file": "y", "data": "squad"}, "--data has no effect: --train-file and --dev-file"),
        ({"null_threshold": "0"}, "--null-threshold has no effect: all questions of version 1.1 have answers"),
        ({"paper": "m1-m4"}, "--paper has no effect: the paper m1-m4 reports no scores for version 1.1 and windows"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(Refused) as error:
        stages(**options)
    assert message in str(error.value)


@pytest.mark.parametrize("option", ["checkpoint", "tokenizer-path", "train-file", "dev-file"])
def test_files_that_are_not_there_are_refused_before_anything_is_written(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {
        name: str(tmp_path / f"{name}.pt") for name in ("checkpoint", "tokenizer-path", "train-file", "dev-file")
    }
    for there in options.values():
        Path(there).write_text("")
    options[option] = str(tmp_path / "nowhere")
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    assert main(FINETUNE_SQUAD, ["--output", str(tmp_path / "out"), *words]) == 2
    assert capsys.readouterr().err == f"error: --{option} {tmp_path / 'nowhere'}: this file or folder does not exist.\n"
    assert not (tmp_path / "out").exists()


def test_a_folder_without_the_questions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        Refused, match=r"has no train-v2\.0\.json or train\.json, plain or \.gz\. Name the files with --train-file"
    ):
        stages(data=str(tmp_path), version="2.0")


# --- the table

ONE_SEED = Seeds((1,), 1)


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def test_the_table(tmp_path: Path) -> None:
    counts = {"train": {"given": 87_599, "questions": 87_500}, "valid": {"given": 10_570, "questions": 10_570}}
    write_json(tmp_path / "data-bin" / "m4" / "spans.json", {"version": "1.1", "longest": 512, "splits": counts})
    write_json(tmp_path / "checked" / "m4.json", {"encoding": "m4", "layers": 12, "dim": 768})
    write_json(tmp_path / "scores" / "m4.json", {"em": 83.004, "f1": 90.0, "total": 10_570})
    write_json(tmp_path / "predictions" / "m4" / "out_of_reach.json", {"in no window": ["a"], "longer": ["b", "c"]})
    write_json(tmp_path / ".stages" / "train.m4.done", {"seconds": 120, "command": "c", "commit": "d"})
    write_json(tmp_path / "baselines.json", {"span": {"em": 1.0, "f1": 5.0, "total": 10_570}, GOLD: FULL})
    inner = '2026-01-01 00:00:00 | INFO | train_inner | {"num_updates": "20", "loss": "3.5", "wps": "100"}\n'
    valid = (
        '2026-01-01 00:00:00 | INFO | valid | {"valid_num_updates": "20", "valid_loss": "3", "valid_spans": "0.5"}\n'
    )
    (tmp_path / "logs").mkdir()
    size = "2026-01-01 00:00:00 | INFO | fairseq_cli.train | num. shared model params: 1,234 (num. trained: 1,200)\n"
    (tmp_path / "logs" / "m4.train.log").write_text(size + inner + valid)
    paper = compare.ComparedPaper("m1-m4", ["--epochs 3, not 2"])
    model, span, gold = compare.compare([("m4", "m4")], ONE_SEED, tmp_path, paper)
    expected = {"EM": 83.0, "F1": 90.0, "out of reach": 3, "updates": 20}
    assert expected.items() <= model.items()
    assert (text(model["paper's EM"]), text(model["paper's F1"])) == ("83.63", "90.53")
    assert set(FINETUNE_SQUAD.main) <= model.keys()
    assert (model["parameters"], span["parameters"]) == (1234, None)
    assert model["comparable"] == "no: 99 and 0 training and development questions left out; --epochs 3, not 2"
    assert model["beats baselines"]
    baseline = {"f1": 5.0, "total": 10_570}  # 5.62 is two standard errors above the baseline
    assert [compare.above(f1, baseline) for f1 in (5.1, 5.6, 5.7)] == [False, False, True]
    assert model["windows right"] == 0.5
    assert (span["F1"], gold["F1"], gold["comparable"]) == (5.0, 100.0, None)
    assert list(span) == list(model)
    counts["train"]["questions"] = 87_599
    write_json(tmp_path / "data-bin" / "m4" / "spans.json", {"version": "1.1", "longest": 512, "splits": counts})
    same, *_ = compare.compare([("m4", "m4")], ONE_SEED, tmp_path, compare.ComparedPaper("m1-m4"))
    assert same["comparable"] == "yes, if pretrained like the paper's model"
    write_json(tmp_path / "checked" / "m4.json", {"encoding": "m4", "layers": 4, "dim": 128})
    (small, *_) = compare.compare([("m4", "m4")], ONE_SEED, tmp_path, compare.ComparedPaper("m1-m4"))
    assert small["comparable"] == "no: 4 layers of width 128, not 12 of width 768"
    counts["valid"]["given"] = 100
    write_json(tmp_path / "data-bin" / "m4" / "spans.json", {"version": "1.1", "longest": 512, "splits": counts})
    (part, *_) = compare.compare([("m4", "m4")], ONE_SEED, tmp_path, compare.ComparedPaper("m1-m4"))
    assert (part["paper's F1"], part["paper's EM"], part["comparable"]) == (None, None, None)


FULL = {"em": 100.0, "f1": 100.0, "total": 10_570}
