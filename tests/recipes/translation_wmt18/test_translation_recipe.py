"""Test the translation recipe: its settings, its plan, what a changed setting repeats, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support_recipes import Planned, value

from recipes.lib.command import main
from recipes.lib.encodings import ENCODINGS, options_of, parse, parse_stacks
from recipes.lib.logs import progress
from recipes.lib.recipe import shown
from recipes.lib.settings import load
from recipes.lib.values import Refused
from recipes.translation_wmt18.__main__ import TRANSLATION

stages = Planned(TRANSLATION).stages


def changed(**options: str) -> set[str]:
    old, new = stages(pos_enc="none,rope"), stages(pos_enc="none,rope", **options)
    return {name.partition(":")[0] for name in new if old[name].key() != new[name].key()}


# --- encodings


def test_the_known_encodings_are_those_of_the_registry() -> None:
    pytest.importorskip("torch")
    from fairseq_posenc.encodings import names

    assert list(ENCODINGS) == list(names())


def test_an_encoding_may_have_options_and_members() -> None:
    encoding = parse("learned+t5[t5.buckets=16, share=none]")
    assert encoding.flags() == ["--pos-enc", "learned+t5", "--pos-enc-args", "buckets=16,share=none"]
    assert encoding.slug == "learned+t5.t5.buckets=16.share=none"
    assert parse("rope").flags() == ["--pos-enc", "rope"]
    several = parse("shaw[clip=16]+t5[share=none]")
    assert several.flags() == ["--pos-enc", "shaw+t5", "--pos-enc-args", "clip=16,t5.share=none"]
    assert several.slug == "shaw.clip=16+t5.share=none"


def test_an_encoding_may_be_active_in_some_layers() -> None:
    assert parse("rope[layers=every-3-skip]").slug == "rope.layers=every-3-skip"
    listed = parse("rope[layers=4:8:12]")
    assert listed.flags() == ["--pos-enc", "rope", "--pos-enc-args", "layers=4:8:12"]
    assert listed.slug == "rope.layers=4_8_12", "fairseq reads a colon in --path as the end of a path"


def test_an_encoding_may_occur_twice() -> None:
    twice = parse("rope+rope-2[rope.layers=every-6-skip,rope-2.layers=every-6,rope-2.base=1e6]")
    assert twice.names == ["rope", "rope-2"]
    assert twice.remembers
    assert options_of(twice)["rope.base"] == "10000"
    assert options_of(twice)["rope_2.base"] == "1e+06"


def test_a_list_keeps_the_commas_in_brackets() -> None:
    settings = load(TRANSLATION, "small", texts={"pos_enc": "none,shaw[clip=8,share=none],rope,none"})
    assert [one.label for one in settings.encodings] == ["none", "shaw[clip=8,share=none]", "rope"]


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("rop", "no position encoding 'rop'; did you mean rope"),
        ("rop+rop-2", "no position encoding 'rop'; did you mean rope"),
        ("shaw[clip=8", "Write NAME or 'NAME"),
        ("[x=1]", "Write NAME"),
        ("shaw[clipp=16]", "there is no option clipp; did you mean clip?"),
        ("rope[clip]", "'clip' is not NAME=VALUE"),
        ("rope/m4+m4-2[m4-2.clpi=3]", "there is no option m4_2.clpi; did you mean clip?"),
    ],
)
def test_a_wrong_encoding_is_refused(label: str, message: str) -> None:
    with pytest.raises(Refused, match=re.escape(message)):
        parse_stacks([label])


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (
            "linformer",
            "linformer does not work in the decoder of a model. Write ENCODER/DECODER, such as linformer/rope",
        ),
        ("fox", "fox does not work in the encoder of a model. Write ENCODER/DECODER, such as rope/fox"),
        ("fox/rope", "fox does not work in the encoder"),
    ],
)
def test_an_encoding_in_the_wrong_stack_is_refused(label: str, message: str) -> None:
    with pytest.raises(Refused, match=re.escape(message)):
        load(TRANSLATION, "small", texts={"pos_enc": label})
    load(TRANSLATION, "small", texts={"pos_enc": "linformer/fox,rope"})


# --- the plan


@pytest.mark.parametrize("preset", TRANSLATION.presets())
def test_every_preset_plans_every_stage(preset: str) -> None:
    plan = stages(preset, pos_enc="none,shaw[clip=8]", direction="en-de")
    kinds = list(dict.fromkeys(name.partition(":")[0] for name in plan))
    kinds = [kind for kind in kinds if kind != "lengths"]
    assert kinds[-8:] == ["subwords", "binarise", "train", "average", "generate", "score", "measure", "compare"]
    assert kinds[0] == "check"
    assert {"train:none", "train:shaw.clip=8", "generate:shaw.clip=8"} <= set(plan)


def test_no_sentence_is_lost_to_the_batch_size() -> None:
    for stage in stages().values():
        if stage.kind in ("train", "generate"):
            assert value(stage, "--required-batch-size-multiple") == "1"


def test_the_users_flags_come_last_and_win() -> None:
    words = stages(train__num_workers="4", **{"train__log-interval": "100"})["train:sinusoidal"].command
    assert [words[n + 1] for n, word in enumerate(words) if word == "--log-interval"] == ["20", "100"]


def test_a_run_that_is_moved_is_the_same_run() -> None:
    settings = load(TRANSLATION, "small", texts={"corpus": "builtin"})
    keys = [
        [stage.key(shown(folder)) for stage in TRANSLATION.plan(settings, folder, shown(folder)).stages()]
        for folder in (Path("/tmp/one"), Path("/tmp/another place"))
    ]
    assert keys[0] == keys[1]


def test_the_default_is_wmt18_and_dry_runs_without_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(TRANSLATION, ["--dry-run", "--output", str(tmp_path / "new"), "--pos-enc", "none,rope"]) == 0
    printed = capsys.readouterr().out
    for part in ("prepare_wmt18.sh --pair en-de --output", "--pos-enc rope", "# score:none"):
        assert part in printed
    assert "= at most 32,768 tokens" in printed
    assert not (tmp_path / "new").exists()


def test_a_run_on_wmt18_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setattr("recipes.translation_wmt18.text.PREPARE_WMT18", "no/such.sh")
    assert main(TRANSLATION, ["--output", str(tmp_path), "--stage", "prepare", "--stop-stage", "prepare"]) == 1
    printed = capsys.readouterr()
    assert "The stages of --corpus wmt18 cannot run, because no/such.sh does not exist" in printed.out
    assert "prepare cannot start: this input is missing" in printed.err


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        ({"generate__beam": "4"}, {"check", "generate", "score", "measure", "compare"}),
        ({"average": "3"}, {"average", "generate", "score", "measure", "compare"}),
        (
            {"vocabulary": "5000"},
            {"subwords", "binarise", "train", "average", "generate", "score", "measure", "compare"},
        ),
        ({"launch": "torchrun", "device": "gpu", "processes": "2", "batches": "1"}, None),
        ({"processes": "1", "threads": "2", "workers": "4", "jobs": "1"}, set()),
        ({"precision": "bf16"}, {"train", "average", "generate", "score", "measure", "compare"}),
    ],
)
def test_a_changed_setting_redoes_what_depends_on_it(options: dict[str, str], kinds: set[str] | None) -> None:
    if kinds is None:
        with pytest.raises(Refused, match="cannot share"):
            changed(**options)
    else:
        assert changed(**options) == kinds


def test_more_processes_go_on_with_the_same_training() -> None:
    plan = stages("base", device="gpu")["train:sinusoidal"]
    many = stages("base", device="gpu", launch="torchrun", processes="4", nodes="2", rendezvous="first:29400")
    assert "torch.distributed.run" in many["train:sinusoidal"].command
    assert many["train:sinusoidal"].key() == plan.key()


def test_without_the_stage_measure_nothing_reads_its_output() -> None:
    with_costs, plan = stages(lengths="6"), stages(lengths="6", measure="false")
    assert with_costs.keys() - plan.keys() == {"measure"}
    assert not [name for name, stage in plan.items() if "measured.json" in " ".join(stage.command)]
    assert "--unmeasured" in plan["compare"].command


def test_the_time_of_measuring_is_passed_on_or_refused() -> None:
    assert value(stages(measure_seconds="3")["measure"], "--seconds") == "3"
    with pytest.raises(Refused, match="--measure-seconds has no effect: nothing is measured"):
        stages(measure="false", measure_seconds="3")


def test_character_coverage_is_that_of_sentencepiece() -> None:
    assert "--character-coverage" not in stages()["subwords"].command
    assert "--character-coverage 0.9995" in " ".join(stages(character_coverage="0.9995")["subwords"].command)


def test_the_average_is_of_the_checkpoints_that_are_meant() -> None:
    stage = stages("short")["average:sinusoidal"]
    assert stage.command[-2:] == ("--every", "50")
    assert "--every" not in stage.identity  # a finished run stays finished
    assert "--every" not in stages("small")["average:sinusoidal"].command


def test_moses_and_fastbpe_are_undone_by_fairseq() -> None:
    words = stages(subwords="fastbpe")["generate:sinusoidal"].command
    assert "--tokenizer moses --bpe fastbpe --bpe-codes" in " ".join(words)
    assert "--model-type" not in stages(subwords="fastbpe")["subwords"].command


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--source-lang", "de"], "Direction de-de: source and target language must differ"),
        (["--target-lang", "../x"], "'../x' is not a language code"),
        (["--preset", "base", "--target-lang", "fr"], "wmt18 has de-en and cs-en in both directions, but not en-fr"),
        (["--pos-enc", "shwa"], "did you mean shaw?"),
        (["--pos-enc", ""], "--pos-enc is empty"),
        (["--train.fp16", "true"], "--train.fp16: the recipe sets this flag itself. Instead use --precision"),
        (["--train.save-dir", "x"], "--train.save-dir: the recipe sets this flag itself"),
        (["--longest", "1024"], "do not fit into 1024 positions"),
        (
            ["--train.max-source-positions", "100"],
            "do not fit into 100 positions. Add --train.max-source-positions 257",
        ),
        (["--average", "0"], "--average 0: the value must be at least 1"),
        (["--average", "12"], "--average 12: the training saves only 11 checkpoints"),
        (
            ["--average", "8", "--train.max-update", "1"],
            "saves only 1 checkpoint. Give --average 1, or save more often",
        ),
        (["--average", "8", "--train.max-update", "7"], "--average 8: the training saves only 7 checkpoints"),
        (["--train.save-interval-updates", "0"], "--train.save-interval-updates 0: the value must be at least 1"),
        (
            ["--subwords", "fastbpe", "--model-type", "bpe"],
            "--model-type has no effect: only SentencePiece uses this option",
        ),
        (["--subwords", "fastbpe", "--character-coverage", "0.99"], "--character-coverage has no effect"),
        (["--corpus", "x", "--raw", "y"], "--raw has no effect: nothing is fetched for --corpus x"),
        (["--character-coverage", "1.1"], "--character-coverage 1.1: the value must be from 0.98 to 1"),
        (["--character-coverage", "0.5"], "--character-coverage 0.5: the value must be from 0.98 to 1"),
        (["--limit", "-1"], "--limit -1: the value must be at least 0"),
        (
            ["--corpus", "builtin", "--test-set", "x"],
            "--test-set is only for --corpus DIR",
        ),
        (["--train.max-tokens", "4k"], "--train.max-tokens 4k: the value must be a whole number"),
        (
            ["--train.pos-enc-encoder", "rope"],
            "--train.pos-enc-encoder: the recipe sets this flag itself. Instead use --pos-enc",
        ),
        (["--generate.path", "other.pt"], "--generate.path: the recipe sets this flag itself. Instead use --average"),
        (["--generate.gen-subset", "valid"], "--generate.gen-subset: the recipe sets this flag itself"),
        (["--output", "/tmp/a,b"], "would split this path at ','"),
        (["--subwords", "bpe"], "must be sentencepiece or fastbpe"),
        (["--output", "/tmp/a:b"], "would split this path at ':'"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"--preset": "small", "--output": str(tmp_path / "new")}
    usual = [word for option, value in given.items() if option not in words for word in (option, value)]
    assert main(TRANSLATION, [*usual, *words]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "/nowhere is not a folder. Name a folder with --corpus."),
        (
            ["--test-set", "tset"],
            "tset.en.gz exists. The folder has these sets in en: test, train, val. Name",
        ),
        (["--target-lang", "fr"], "train.fr.gz exists. The folder has the set train in these languages: de, en."),
    ],
)
def test_a_missing_corpus_or_set_is_refused_before_the_models_are_checked(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "text"
    folder.mkdir()
    for name in ("train", "val", "test"):
        for language in ("en.gz", "de"):
            (folder / f"{name}.{language}").write_text("")
    corpus = str(folder if words else "/nowhere")
    assert main(TRANSLATION, ["--preset", "small", "--output", str(tmp_path / "new"), "--corpus", corpus, *words]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    load(TRANSLATION, "small", texts={"corpus": str(folder)}).refuse_missing()


def test_the_screen_says_what_a_stage_without_a_count_does(tmp_path: Path) -> None:
    log = tmp_path / "subwords.log"
    log.write_text("$ python\nlearning 6,000 subword types ...\n")
    assert progress(stages()["subwords"], log) == "subwords (learning 6,000 subword types ...)"
    log.write_text("loading ...\nval: 0 pairs [00:00, ? pairs/s]\rval: 9 pairs [00:01, 9.0 pairs/s]")
    assert progress(stages()["subwords"], log) == "subwords (val: 9 pairs [00:01, 9.0 pairs/s])"
