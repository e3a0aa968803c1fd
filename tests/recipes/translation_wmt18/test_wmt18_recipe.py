"""Test the DIET paper's translation experiment: directions, seeds, encodings per stack, lengths, its numbers."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from support_recipes import OUTPUT, Planned

from recipes.lib.encodings import parse, parse_either
from recipes.lib.stages import Stage
from recipes.lib.values import Refused
from recipes.translation_wmt18.__main__ import TRANSLATION, default_output
from recipes.translation_wmt18.published import differences, paper

ALL = "en-de,de-en,en-cs,cs-en"
TABLE4 = [name for name in TRANSLATION.presets() if name.startswith("table4")]
PLANNED = Planned(TRANSLATION)
settings, stages = PLANNED.settings, PLANNED.stages


def words(stage: Stage) -> str:
    return " ".join(stage.command)


# --- the paper's settings


@pytest.mark.parametrize("preset", ["base", *TABLE4])
def test_the_papers_schedule_and_search(preset: str) -> None:
    """The DIET paper's decoding and number of updates; its models are tensor2tensor's."""
    loaded = settings(preset)
    assert {"optimizer": "adam", "max-update": 250_000}.items() <= loaded.train.items()
    assert loaded.arch == "posenc_transformer_wmt_en_de"
    generate = next(stage for name, stage in stages(preset).items() if name.startswith("generate:"))
    assert "--task posenc_translation --beam 10 --lenpen 0.6 --lenpen-form gnmt" in words(generate)
    assert differences(loaded) == (["training"] if preset == "base" else [])


def test_the_papers_schedule_is_that_of_tensor2tensor() -> None:
    """The schedule is transformer_base_v3: 2 * 512^-0.5 * min(step, 8000) / 8000 * max(step, 8000)^-0.5."""
    for preset in TABLE4:
        train = settings(preset).train
        assert train["lr"] == pytest.approx(2 * (512 * train["warmup-updates"]) ** -0.5, rel=1e-3)
        for side in ("encoder", "decoder"):
            assert train[f"{side}-normalize-before"] is True


def test_every_row_of_table_4_has_a_preset() -> None:
    rows = {
        "table4-vaswani": [39.00, 38.42, 18.55, 22.93],
        "table4-shaw": [40.10, 38.90, 18.74, 23.89],
        "table4-diet-rel": [39.47, 38.49, 18.68, 23.93],
    }
    for preset, figures in rows.items():
        loaded = settings(preset)
        (encoding,) = loaded.encodings
        assert [paper(encoding, one.label) for one in loaded.directions] == figures
    assert [one.label for one in settings("table4-ours").encodings] == ["diet-abs[rank=128]", "t5", "rope"]


def test_what_is_not_the_papers_has_no_figure() -> None:
    assert paper(parse("shaw[values=true,clip=20]"), "cs-en") == 23.89
    assert paper(parse("diet-rel"), "cs-de") is None
    for label in ("shaw", "t5", "sinusoidal[freq=t2t]", "sinusoidal/diet-rel"):
        assert paper(parse_either(label), "en-de") is None


@pytest.mark.parametrize(
    ("options", "departs"),
    [
        ({"limit": "1000"}, ["text"]),
        ({"corpus": "/a/folder"}, ["text"]),
        ({"arch": "posenc_transformer_tiny"}, ["model"]),
        ({"train__max-update": "1000"}, ["updates"]),
        ({"train__patience": "1"}, ["updates"]),
        ({"train__encoder-layers": "2"}, ["training"]),
        ({"train__optimizer": "sgd", "train__max-epoch": "1"}, ["updates", "training"]),
        ({"batches": "4", "train__max-tokens": "8192", "train__log-interval": "5"}, []),
        ({"batches": "4"}, ["training"]),
        ({"train__save-interval-updates": "50"}, ["training"]),  # the last five checkpoints are then closer together
        ({"longest": "20"}, ["text"]),
        ({"generate__prefix-size": "3"}, ["decoding"]),
        ({"generate__max-len-b": "5"}, ["decoding"]),
        ({"generate__lenpen-form": "fairseq"}, ["decoding"]),
    ],
)
def test_a_run_says_in_what_it_departs_from_the_papers(options: dict[str, str], departs: list[str]) -> None:
    assert differences(settings("table4-vaswani", **options)) == departs
    command = stages("table4-vaswani", **options)["compare"].command
    assert [word for option, word in pairwise(command) if option == "--differs"] == departs


@pytest.mark.parametrize(
    ("train", "options", "departs"),
    [
        ("commoncrawl.de-en", {"limit": 0, "longest_words": 250}, []),
        ("commoncrawl.de-en", {"limit": 9}, ["text"]),
        ("commoncrawl.de-en", {"longest_words": 10}, ["text"]),
        ("mine", {}, ["text"]),
    ],
)
def test_wmt18_that_was_prepared_before_is_the_papers_text(
    tmp_path: Path, train: str, options: dict[str, int], departs: list[str]
) -> None:
    names = {
        "train": ["europarl-v7.de-en", train, "news-commentary-v13.de-en"],
        "test": ["newstest2018"],
        "valid": ["newstest2017"],
    }
    sources = [{"split": split, "name": name} for split, some in names.items() for name in some]
    (tmp_path / "corpus.json").write_text(json.dumps({"sources": sources, "identity": {"options": options}}))
    assert differences(settings("table4-vaswani", corpus=str(tmp_path), direction="en-de")) == departs


# --- directions


def test_several_directions_share_the_text_of_a_pair() -> None:
    plan = stages(direction=ALL, corpus="builtin")
    assert [name for name in plan if name.startswith("binarise")] == ["binarise:en-de", "binarise:en-cs"]
    for direction, text in (("en-de", "en-de"), ("de-en", "en-de"), ("en-cs", "en-cs"), ("cs-en", "en-cs")):
        train, score = plan[f"train:{direction}.sinusoidal"], plan[f"score:{direction}.sinusoidal"]
        source, target = direction.split("-")
        assert train.command[1].endswith(f"/{text}/data-bin")
        assert f"--source-lang {source} --target-lang {target}" in words(train)
        assert f"/{text}/raw/test.{target} --language {target}" in words(score)
        assert plan[f"binarise:{text}"] in train.after
    assert words(plan["check"]).count("--target-lang de") == 2  # for BLEU and for the model
    assert len({stage.key() for stage in plan.values()}) == len(plan)


def test_a_single_direction_has_the_names_and_folders_that_it_always_had() -> None:
    plan = stages(direction="de-en", corpus="builtin")
    assert {"corpus", "train:sinusoidal", "score:sinusoidal"} <= set(plan)
    assert plan["train:sinusoidal"].outputs == (OUTPUT / "checkpoints" / "sinusoidal",)
    other = stages(source_lang="de", target_lang="en", corpus="builtin")
    assert {name: stage.key() for name, stage in plan.items()} == {name: stage.key() for name, stage in other.items()}
    assert default_output(settings(direction="de-en")) == "translation_wmt18/wmt18.de-en.posenc_transformer_small.1"


def test_wmt18_is_prepared_once_a_pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = stages("table4-shaw", newstest="sacrebleu", raw="/a/place")
    for pair in ("en-de", "en-cs"):
        assert f"prepare_wmt18.sh --pair {pair} --newstest sacrebleu --output" in words(plan[f"prepare:{pair}"])
        assert words(plan[f"prepare:{pair}"]).endswith(f"/{pair}/wmt18 --raw /a/place --workers 8")
    other = stages("table4-shaw", newstest="sacrebleu", workers="2")
    assert {name for name in plan if plan[name].key() != other[name].key()} == set()
    mine = words(stages("base", newstest="sets", raw="here")["prepare"])  # commands run in the root of the repository
    assert f"--newstest {tmp_path}/sets --output" in mine
    assert f"--raw {tmp_path}/here" in mine
    assert "--raw data/raw" in words(stages("base")["prepare"])
    assert "--valid-set valid" in words(plan["corpus:en-cs"])


def test_a_validation_set_may_be_called_val_or_valid(tmp_path: Path) -> None:
    assert settings(corpus=str(tmp_path)).sets["valid"] == "val"
    (tmp_path / "valid.en.gz").touch()
    assert settings(corpus=str(tmp_path)).sets["valid"] == "valid"
    (tmp_path / "val.en").touch()
    assert settings(corpus=str(tmp_path)).sets["valid"] == "val"
    assert settings(corpus=str(tmp_path), valid_set="dev").sets["valid"] == "dev"


def test_an_earlier_run_that_is_not_there_is_missed_before_the_training() -> None:
    plan = stages(beside="/an/earlier run")
    assert Path("/an/earlier run/comparison.json") in plan["check"].inputs
    assert words(plan["compare"]).endswith("--beside /an/earlier run")
    assert stages()["train:sinusoidal"].key() == plan["train:sinusoidal"].key()


# --- seeds


def test_another_seed_trains_what_is_missing_only() -> None:
    one, two = stages(pos_enc="none,rope"), stages(pos_enc="none,rope", seeds="1,2")
    assert {name for name in one if one[name].key() != two[name].key()} == {"compare"}
    assert {name for name in two if name not in one} == {
        f"{kind}:{name}.seed=2" for kind in ("train", "average", "generate", "score") for name in ("none", "rope")
    }
    assert "--seed 2 --save-dir" in words(two["train:none.seed=2"])
    assert words(two["measure"]).count("--checkpoint") == 2  # time and memory do not depend on the seed


# --- an encoding for each stack


def test_each_stack_may_have_its_own_encoding() -> None:
    plan = stages(pos_enc="sinusoidal,shaw[clip=4]/rope,t5/t5")
    assert "--pos-enc-encoder shaw --pos-enc-encoder-args clip=4 --pos-enc-decoder rope --seed" in words(
        plan["train:shaw.clip=4--rope"]
    )
    assert "--pos-enc t5 --seed" in words(plan["train:t5"])  # the same encoding in both stacks


# --- lengths


def test_separate_vocabularies() -> None:
    """Sources are split by the subwords of their own language, also in fairseq-interactive."""
    options = {"separate": "true", "train__share-all-embeddings": "false", "direction": "en-de,de-en", "corpus": "x"}
    plan = stages(pos_enc="rope", **options)
    assert "--separate" in words(plan["subwords:en-de"])
    assert "--joined-dictionary" not in words(plan["binarise:en-de"])
    assert "--share-all-embeddings" not in words(plan["train:en-de.rope"])
    assert "en-de/subwords/model.en.model" in words(plan["generate:en-de.rope"])
    assert "en-de/subwords/model.de.model" in words(plan["generate:de-en.rope"])
    assert "codes.de" in words(stages(pos_enc="rope", subwords="fastbpe", **options)["generate:de-en.rope"])
    assert "--joined-dictionary" in words(stages()["binarise"])


def test_training_on_short_pairs_leaves_the_test_set_whole() -> None:
    options = {"train_longest_words": "12", "train__max-source-positions": "20", "train__max-target-positions": "24"}
    plan = stages(**options)
    assert settings(**options).longest_training == 19
    assert "--longest-words 12" in words(plan["corpus"])
    assert "--longest 256 --longest-training 19" in words(plan["subwords"])
    assert "--skip-invalid-size-inputs-valid-test" in plan["generate:sinusoidal"].command
    assert "--may-refuse" in plan["score:sinusoidal"].command
    assert "--bound 12 --bound 15 --bound 18 --bound 24 --trained 12" in words(plan["lengths"])
    assert "lengths" not in stages()
    assert "--may-refuse" not in stages(lengths="10,20")["score:sinusoidal"].command
    assert settings(lengths="20,10").length_bounds == [10, 20]
    assert ".12-words." in default_output(settings(**options))


# --- refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"direction": "ende"}, "--direction ende: write SOURCE-TARGET"),
        ({"direction": "en-de,de-de"}, "Direction de-de: source and target"),
        ({"direction": "en-de,de-en", "source_lang": "cs"}, "set a single direction"),
        ({"preset": "base", "direction": "cs-de"}, "wmt18 has de-en and cs-en in both directions, but not cs-de"),
        ({"seeds": "1,x"}, "--seeds 1,x: the value must be a list"),
        ({"pos_enc": "rope/t5/none"}, "a model has only an encoder and a decoder"),
        ({"pos_enc": "rope/t6"}, "no position encoding 't6'"),
        ({"train_longest_words": "-1"}, "--train-longest-words -1: the value must be at least 0"),
        ({"corpus": "builtin", "newstest": "x"}, "--newstest is only for --corpus wmt18"),
        ({"lengths": "0,10"}, "--lengths 0,10: each number of words must be at least 1"),
        ({"separate": "true"}, "--separate gives each language its own dictionary.*--train.share-all-embeddings false"),
        (
            {"train__source-lang": "de"},
            "--train.source-lang: the recipe sets this flag itself. Instead use --direction",
        ),
        (
            {"generate__task": "translation"},
            "--generate.task: the recipe sets this flag itself. Instead use --generate.lenpen-form",
        ),
    ],
)
def test_what_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(Refused, match=message.replace("'", ".")):
        stages(options.pop("preset", "small"), **options)
