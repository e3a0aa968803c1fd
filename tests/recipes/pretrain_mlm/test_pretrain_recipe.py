"""Test the pretraining recipe: its settings, its plan, what is refused, and how it reads logs and counts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from support_recipes import OUTPUT, Planned, value

from fairseq_posenc.commands import whole_models
from fairseq_posenc.commands.params import of_architecture
from fairseq_posenc.encodings import StackShape, build
from recipes.lib.command import main
from recipes.lib.encodings import parse
from recipes.lib.package import figures
from recipes.lib.recipe import ROOT, shown
from recipes.lib.values import Refused
from recipes.pretrain_mlm.__main__ import PRETRAIN_MLM

WARM = {"m1-m4-warm-start", "m4m-large", "m4m-large-roberta-large", "m4m-c4"}
PRESETS = PRETRAIN_MLM.presets()
FOLDER = re.compile(r"/(builtin|wiki)\b")  # a --corpus that presets for the user's own texts replace
#: Settings that each preset needs.
NEEDED = {
    "m1-m4-warm-start",
    "m1-m4",
    "m1-m4-per-head",
    "m1-m4-xl",
    "m4m-unsuccessful",
    "m4m-small",
    "m4m-large",
    "m4m-large-roberta-large",
    "diet-english",
}
PLANNED = Planned(PRETRAIN_MLM)
settings, stages = PLANNED.settings, PLANNED.stages


@pytest.mark.parametrize(("mebibytes", "tasks"), [(0, 1), (25, 2), (35, 3)])
def test_a_short_text_has_fewer_parts_and_the_user_is_told(mebibytes: int, tasks: int, tmp_path: Path) -> None:
    for name in ("train.txt", "valid.txt"):
        (tmp_path / name).write_text("One document.\n", encoding="utf-8")
    with (tmp_path / "train.txt").open("ab") as file:
        file.truncate((mebibytes << 20) + 20)  # a sparse file
    values = {"corpus": str(tmp_path), "tasks": "3"}
    plan = PRETRAIN_MLM.plan(settings(**values), OUTPUT, shown(OUTPUT))
    corpus = next(stage for stage in plan.stages() if stage.name == "corpus")
    assert value(corpus, "--tasks") == str(tasks)
    assert any(f"--tasks 3 is lowered to {tasks}, because" in note for note in plan.notes) == (tasks < 3)


def needed(preset: str, folder: Path) -> dict[str, str]:
    if preset == "diet-multilingual":
        return {"languages": str(folder)}
    (folder / "vocab.txt").touch()  # a file in the folder of a BERT
    start = {"init_from": str(folder)} if preset in WARM else {}
    if preset == "m4m-c4":
        return start
    return {"books": str(folder), **start} if preset in NEEDED | {"base", "large"} else {}


def test_pages_and_examples_name_runs_as_they_are_called(tmp_path: Path) -> None:
    called = {FOLDER.sub("", PRETRAIN_MLM.folder(settings(name, **needed(name, tmp_path)))) for name in PRESETS}
    places = [*ROOT.glob("docs/*.md"), *ROOT.glob("recipes/*/__main__.py"), *ROOT.glob("data-bin-scripts/*.sh")]
    named = {name for place in places for name in re.findall(r"results/(pretrain_mlm/[\w.+-]+)", place.read_text())}
    assert named
    assert {FOLDER.sub("", name) for name in named} <= called


# --- the plan


@pytest.mark.parametrize("preset", PRETRAIN_MLM.presets())
def test_every_preset_plans_every_stage(preset: str, tmp_path: Path) -> None:
    planned = stages(preset, pos_enc="none,shaw[clip=8]", **needed(preset, tmp_path))
    kinds = list(dict.fromkeys(name.partition(":")[0] for name in planned))
    assert kinds[0] == "check"
    assert kinds[-5:] == ["corpus", "unigrams", "train", "evaluate", "compare"]
    assert {"train:none", "train:shaw.clip=8", "evaluate:shaw.clip=8"} <= set(planned)


@pytest.mark.parametrize(
    ("preset", "sequences", "length", "updates", "rate"),
    [
        ("m1-m4", 160, 512, None, 1e-4),
        ("m1-m4-warm-start", 160, 512, None, 5e-5),
        ("m4m-small", 96, 512, 500_000, 1e-4),
        ("m4m-large", 480, 512, 500_000, 1e-4),
        ("m4m-c4", 480, 512, 500_000, 1e-4),
        ("m4m-unsuccessful", 96, 512, 500_000, 1e-4),
        ("m4m-large-roberta-large", 192, 512, 500_000, 1e-4),
        ("diet-english", 4096, 128, 500_000, 0.0018),
        ("diet-multilingual", 4096, 512, 125_000, 0.0018),
    ],
)
def test_presets_have_the_settings_of_the_papers(preset, sequences, length, updates, rate, tmp_path) -> None:
    """The settings are those of the papers M1-M4, M4M and DIET; M1-M4 does not state the number of updates."""
    loaded = settings(preset, **needed(preset, tmp_path))
    assert loaded.batches * loaded.number("batch-size", 0) == sequences
    assert loaded.length == length
    assert loaded.train["lr"] == rate
    assert updates is None or loaded.train["max-update"] == updates


@pytest.mark.parametrize(("preset", "ending"), [("diet-english", ""), ("diet-multilingual", ", 100 languages")])
def test_models_of_the_diet_presets_have_the_parameters_that_the_paper_counts(preset, ending, tmp_path) -> None:
    """Table 6 counts 512 positions for both, although the English models are trained on sequences of 128 pieces."""
    loaded = settings(preset, **needed(preset, tmp_path))
    train = stages(preset, **needed(preset, tmp_path))["train:diet-rel"]
    assert (value(train, "--tokens-per-sample"), value(train, "--max-positions")) == (str(loaded.length), "512")
    shape = StackShape(layers=12, heads=12, dim=768, max_length=loaded.positions, has_cls=True)
    vocabulary, compared = whole_models.VOCABULARIES[ending], 0
    for figure in figures("DIET", table="Table 6", column=f"parameters{ending}"):
        if figure.encoding != "shaw":  # the number of Shaw cannot be derived
            parsed = parse(figure.encoding)
            count = sum(parameter.numel() for parameter in build(parsed.name, parsed.args, shape).parameters())
            assert f"{whole_models.total(count, shape, vocabulary) / 1e6:.1f}M" == figure.printed
            compared += figure.encoding in loaded.pos_enc
    assert compared == 3


def test_pretrained_models_of_diet_lack_the_pooler_and_the_segment_vectors_of_table_6() -> None:
    """Both come with fine-tuning; docs/masked-lm.md names their 0.59 million parameters."""
    pooler, segments, symbols = 768 * 768 + 768, 2 * 768, 30_522 - 4  # four special symbols are counted already
    built = of_architecture("posenc_bert_base", {"--pos-enc": "learned"})["model_without_words"]
    with_words = built + symbols * (768 + 1)  # a vector and a bias for each symbol
    shape = StackShape(layers=12, heads=12, dim=768, max_length=512, has_cls=True)
    assert with_words + pooler + segments == whole_models.total(512 * 768, shape)
    assert f"{(pooler + segments) / 1e6:.2f} million parameters fewer" in (ROOT / "docs/masked-lm.md").read_text()


def test_positions_are_as_many_as_the_longest_sequence_or_more() -> None:
    assert settings(length="64").positions == 64
    with pytest.raises(Refused, match="--positions 100: sequences of --length 128 need 128 positions"):
        settings(positions="100")


def test_the_diet_schedule_warms_up_a_fortieth_with_lamb(tmp_path: Path) -> None:
    for preset in ("diet-english", "diet-multilingual"):
        train = settings(preset, **needed(preset, tmp_path)).train
        assert train["optimizer"] == "posenc_lamb"
        assert train["warmup-updates"] == 0.025 * train["max-update"]


def test_a_warm_start_trains_the_imported_model(tmp_path: Path) -> None:
    planned = stages("m1-m4-warm-start", **needed("m1-m4-warm-start", tmp_path))
    slug = "m4+segments-input"
    assert value(planned[f"import:{slug}"], "--pos-enc") == slug
    train = planned[f"train:{slug}"]
    assert value(train, "--finetune-from-model").endswith(f"imported/{slug}/checkpoint.pt")
    assert planned[f"import:{slug}"] in train.after
    assert value(train, "--max-epoch") == "3"
    assert value(planned["corpus"], "--tokenizer-path") == str(tmp_path / "vocab.txt")  # the vocabulary of the model
    names = list(planned)
    assert names.index("source") < names.index(f"import:{slug}") < names.index("corpus")


def test_the_linear_decay_ends_with_the_training() -> None:
    words = stages(**{"train__max-update": "5000"})["train:none"]
    assert value(words, "--total-num-update") == "5000"
    words = stages(**{"train__max-update": "50", "train__total-num-update": "70"})["train:none"]
    assert words.command.count("--total-num-update") == 1
    assert value(words, "--total-num-update") == "70"


def test_sequences_leave_room_for_two_special_symbols() -> None:
    planned = stages(length="512", corpus="builtin")
    assert value(planned["corpus"], "--longest") == "510"
    assert (
        value(planned["train:shaw"], "--tokens-per-sample") == value(planned["train:shaw"], "--max-positions") == "512"
    )


def test_shards_are_read_epoch_by_epoch() -> None:
    words = stages(tasks="3")["train:none"].command
    shards = next(word for word in words if "shard00000" in word).split(":")
    assert [Path(shard).name for shard in shards] == ["shard00000", "shard00001", "shard00002"]


def test_whole_words_need_to_know_the_tokenizer() -> None:
    words = stages(masking="whole-word", tokenizer="gpt2")["train:none"]
    assert value(words, "--subwords") == "gpt2"
    assert value(words, "--gpt2-encoder-json").endswith("data/tokenizer/encoder.json")
    assert "--mask-whole-words" not in stages()["train:none"].command


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, True),
        ({"limit": "1000"}, False),
        ({"arch": "posenc_roberta_large"}, False),
        ({"corpus": "builtin", "books": ""}, False),
    ],
)
def test_only_the_whole_text_and_the_papers_model_have_the_papers_loss(
    changes: dict[str, str], shown: bool, tmp_path: Path
) -> None:
    compare = stages("m4m-small", **{**needed("m4m-small", tmp_path), **changes})["compare"]
    assert ("--paper" in compare.command) == shown


def test_published_corpora_and_tokenizers_are_fetched(tmp_path: Path) -> None:
    planned = stages("m4m-large", **needed("m4m-large", tmp_path))
    assert {"fetch-wikipedia", "fetch-openwebtext", "fetch-gpt2-bpe"} <= set(planned)
    words = planned["corpus"].command
    assert {"data/raw/wikipedia", "data/raw/openwebtext", f"file:{tmp_path}"} <= set(words)
    assert value(planned["corpus"], "--valid-part") == "0.005"
    c4 = stages("m4m-large", corpus="c4_en", init_from=str(tmp_path))["corpus"]
    assert value(c4, "--valid") == "data/raw/c4/c4-validation.*"


def test_a_folder_is_its_train_and_valid_files(tmp_path: Path) -> None:
    for name in ("train.a.txt", "train.b.jsonl.gz", "valid.a.txt", "notes.txt"):
        (tmp_path / name).write_text("a\n")
    words = stages(corpus=str(tmp_path))["corpus"].command
    assert [Path(word).name for word in words if str(tmp_path) in word] == [
        *("train.a.txt", "train.b.jsonl.gz"),
        "valid.a.txt",
    ]


def test_a_prepared_corpus_is_used_as_it_is(tmp_path: Path) -> None:
    for name in ("shard00000", "shard00001"):
        (tmp_path / name).mkdir()
    options = {"tokenizer": "sentencepiece", "longest": 126}
    (tmp_path / "corpus.json").write_text(json.dumps({"options": options}))
    planned = stages(corpus=str(tmp_path))
    assert "corpus" not in planned
    assert f"{tmp_path}/shard00000:{tmp_path}/shard00001" in planned["train:none"].command
    assert tmp_path / "corpus.json" in planned["train:none"].inputs
    for wrong, message in (
        ({"length": "64"}, "--length 128 or more"),
        ({"tokenizer": "gpt2"}, "the tokenizer sentencepiece"),
    ):
        with pytest.raises(Refused, match=message):
            stages(corpus=str(tmp_path), **wrong)


def changed(**changes: str) -> set[str]:
    old, new = stages(), stages(**changes)
    return {name.partition(":")[0] for name in new if old[name].key() != new[name].key()}


def test_moving_the_text_changes_no_stage(tmp_path: Path) -> None:
    keys = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        for split in ("train", "valid"):
            (tmp_path / name / f"{split}.txt").write_text("The same text.\n")
        keys.append(stages(corpus=str(tmp_path / name))["corpus"].key(shown(OUTPUT)))
    assert keys[0] == keys[1]


def test_a_changed_setting_repeats_the_stages_that_depend_on_it() -> None:
    assert changed(workers="7", jobs="1", threads="2") == set()
    assert changed(train__lr="0.1") == {"check", "train", "evaluate", "compare"}
    assert changed(vocabulary="100") == {"corpus", "unigrams", "train", "evaluate", "compare"}


# --- refusals


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"corpus": "no-such"}, "--corpus no-such: the folder does not exist. Known corpora are books_wiki, "),
        ({"books": "x"}, "--books has no effect: only --corpus books_wiki"),
        ({"cased": "true"}, "--cased has no effect: --tokenizer sentencepiece"),
        ({"tokenizer_path": "published"}, "no published SentencePiece model"),
        ({"train__tokens-per-sample": "64"}, "use --length"),
        ({"train__max-tokens": "64"}, "use --train.batch-size"),
        ({"prepare__seed": "2"}, "--prepare.seed: the recipe sets this flag itself"),
        ({"valid_part": "0.3"}, "--valid-part has no effect"),
        ({"smoothing": "0.3"}, "--smoothing has no effect"),
        ({"raw": "x"}, "--raw has no effect: nothing is downloaded"),
        ({"documents": "wiki"}, "--documents has no effect"),
        ({"train__max-sentences": "64"}, "use --train.batch-size"),
        ({"init_from": "."}, "must be tokenized with the tokenizer of this model"),
        ({"valid_part": "2"}, "--valid-part 2.0:"),
        ({"smoothing": "-1"}, "--smoothing -1.0:"),
        ({"length": "4"}, "--length 4: the value must be at least 8"),
        ({"train__batch-size": "many"}, "--train.batch-size many"),
    ],
)
def test_wrong_settings_are_refused(changes: dict[str, str], message: str) -> None:
    with pytest.raises(Refused, match=message):
        stages(**changes)


@pytest.mark.parametrize(
    ("preset", "changes", "message"),
    [
        ("small", {"corpus": "books_wiki"}, "needs --books FOLDER. BooksCorpus is no longer distributed"),
        ("small", {"corpus": "wiki100"}, "needs --languages FOLDER"),
        ("small", {"tokenizer_path": "no.model"}, "--tokenizer-path no.model: this file or folder does not exist"),
        ("small", {"init_from": "no-such"}, "--init-from no-such: this file or folder does not exist"),
        ("m4m-large", {"books": "."}, r"starts from the model roberta-base. Give .* --init-from"),
        ("m1-m4-warm-start", {"books": "."}, r"starts from the model .* --init-from"),
    ],
)
def test_paths_are_only_needed_by_a_run(preset: str, changes: dict[str, str], message: str) -> None:
    assert "compare" in stages(preset, **changes)  # what --list and --dry-run show
    with pytest.raises(Refused, match=message):
        settings(preset, **changes).refuse_missing()


def test_a_folder_without_validation_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a\n")
    with pytest.raises(Refused, match=r"has no file valid\.\*"):
        stages(corpus=str(tmp_path))


def test_lamb_in_half_precision_keeps_its_tensors_apart(tmp_path: Path) -> None:
    changes = {"device": "gpu", "precision": "fp16", **needed("diet-english", tmp_path)}
    assert "--fp16-no-flatten-grads" in stages("diet-english", **changes)["train:shaw"].command


def test_a_batch_that_cannot_be_shared_names_its_flag() -> None:
    with pytest.raises(Refused, match=r"multiply --train\.batch-size"):
        stages(batches="3", processes="2")


def test_a_dry_run_needs_no_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "books").mkdir()
    asked = ["--preset", "m4m-small", "--books", str(tmp_path / "books"), "--dry-run"]
    assert main(PRETRAIN_MLM, [*asked, "--output", str(tmp_path / "new")]) == 0
    printed = capsys.readouterr().out
    assert "# Number of sequences per update (512 tokens per sequence): --update-freq 8 x" in printed
    assert "prepare_corpus.py" in printed
    assert not (tmp_path / "new").exists()


# --- results


def test_the_loss_of_frequencies() -> None:
    pytest.importorskip("fairseq")
    from recipes.pretrain_mlm.unigrams import cross_entropy

    assert cross_entropy(np.array([1.0, 1.0]), np.array([5.0, 5.0])) == 1  # a fair coin
    train, valid = np.array([2.0, 0.0]), np.array([1.0, 1.0])  # smoothed to 3/4 and 1/4
    assert cross_entropy(train, valid) == pytest.approx((np.log2(4 / 3) + 2) / 2)


def test_a_curve_has_all_attempts_and_the_last_loss_counts(tmp_path: Path) -> None:
    from recipes.lib.curves import read

    def line(kind: str, **facts: str) -> str:
        return f"2026-01-01 00:00:00 | INFO | {kind} | {json.dumps(facts)}"

    def inner(update: str, loss: str) -> str:
        return line("train_inner", num_updates=update, loss=loss, wps="100")

    lines = [inner("20", "9"), inner("40", "8"), "$ again", inner("40", "7"), "| train_inner | {broken}"]
    lines += [line("valid", valid_num_updates="40", valid_loss="6.5")]
    (tmp_path / "log").write_text("\n".join(lines))
    assert read(tmp_path / "log") == ([(20, 9.0), (40, 7.0)], [(40, 6.5)], 100.0)


def test_the_plateau_is_left_for_good() -> None:
    from recipes.pretrain_mlm.compare import left

    assert left([(20, 9.0), (40, 8.4), (60, 8.9), (80, 8.4), (100, 8.0)], plateau=9.0) == 80
    assert left([(20, 9.0), (40, 8.9)], plateau=9.0) is None
    assert left([(20, 8.0)], plateau=9.0) == 20
