"""The DIET paper's translation experiment: directions, seeds, encodings of each stack, lengths, the paper's figures."""

from __future__ import annotations

import json
import os
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from pathlib import Path
from typing import Any, ClassVar

import pytest

from recipes.lib.encodings import parse, parse_either
from recipes.lib.recipe import shown
from recipes.lib.settings import load
from recipes.lib.stages import Stage
from recipes.lib.values import Refused
from recipes.translation_wmt18.__main__ import TRANSLATION, default_output, hints, remarks
from recipes.translation_wmt18.published import differences, paper
from recipes.translation_wmt18.settings import Settings

OUTPUT = Path("/tmp/an output")
ALL = "en-de,de-en,en-cs,cs-en"
TABLE4 = [name for name in TRANSLATION.presets() if name.startswith("table4")]


def settings(preset: str = "small", **given: str) -> Settings:
    return load(TRANSLATION, preset, given={name.replace("__", "."): value for name, value in given.items()})


def stages(preset: str = "small", **given: str) -> dict[str, Stage]:
    plan = TRANSLATION.plan(settings(preset, **given), OUTPUT, shown(OUTPUT))
    return {stage.name: stage for stage in plan.stages()}


def words(stage: Stage) -> str:
    return " ".join(stage.command)


# --- the paper's


@pytest.mark.parametrize("preset", ["base", *TABLE4])
def test_the_papers_schedule_and_search(preset: str) -> None:
    """METHODS.md 6.D."""
    found = settings(preset)
    assert {"optimizer": "adam", "max-update": 250_000}.items() <= found.train.items()
    assert found.arch == "posenc_transformer_wmt_en_de"
    generate = next(stage for name, stage in stages(preset).items() if name.startswith("generate:"))
    assert "--task posenc_translation --beam 10 --lenpen 0.6 --lenpen-form gnmt" in words(generate)
    assert not differences(found)


def test_every_row_of_table_4_has_a_preset() -> None:
    rows = {
        "table4-vaswani": [39.00, 38.42, 18.55, 22.93],
        "table4-shaw": [40.10, 38.90, 18.74, 23.89],
        "table4-diet-rel": [39.47, 38.49, 18.68, 23.93],
    }
    for preset, figures in rows.items():
        found = settings(preset)
        (encoding,) = found.encodings
        assert [paper(encoding, one.label) for one in found.directions] == figures
    assert [one.label for one in settings("table4-ours").encodings] == ["diet-abs[rank=128]", "t5", "rope"]


def test_what_is_not_the_papers_has_no_figure() -> None:
    assert paper(parse("shaw[values=true,clip=20]"), "cs-en") == 23.89
    assert paper(parse("diet-rel"), "cs-de") is None
    for label in ("shaw", "t5", "sinusoidal[freq=t2t]", "sinusoidal/diet-rel"):
        assert paper(parse_either(label), "en-de") is None


@pytest.mark.parametrize(
    ("given", "departs"),
    [
        ({"limit": "1000"}, ["text"]),
        ({"corpus": "/a/folder"}, ["text"]),
        ({"arch": "posenc_transformer_tiny"}, ["model"]),
        ({"train__max-update": "1000"}, ["updates"]),
        ({"generate__lenpen-form": "fairseq"}, ["decoding"]),
    ],
)
def test_a_run_says_in_what_it_departs_from_the_papers(given: dict[str, str], departs: list[str]) -> None:
    assert differences(settings("base", **given)) == departs
    assert words(stages("base", **given)["compare"]).endswith(f"--differs {departs[0]}")


@pytest.mark.parametrize(
    ("train", "limit", "departs"),
    [("commoncrawl.de-en", 0, []), ("commoncrawl.de-en", 9, ["text"]), ("mine", 0, ["text"])],
)
def test_wmt18_that_was_prepared_before_is_the_papers_text(
    tmp_path: Path, train: str, limit: int, departs: list[str]
) -> None:
    names = {
        "train": ["europarl-v7.de-en", train, "news-commentary-v13.de-en"],
        "test": ["newstest2018"],
        "valid": ["newstest2017"],
    }
    sources = [{"split": split, "name": name} for split, some in names.items() for name in some]
    (tmp_path / "corpus.json").write_text(json.dumps({"sources": sources, "identity": {"options": {"limit": limit}}}))
    assert differences(settings("base", corpus=str(tmp_path))) == departs


# --- directions


def test_several_directions_share_the_text_of_a_pair() -> None:
    found = stages(direction=ALL, corpus="builtin")
    assert [name for name in found if name.startswith("binarise")] == ["binarise:en-de", "binarise:en-cs"]
    for direction, text in (("en-de", "en-de"), ("de-en", "en-de"), ("en-cs", "en-cs"), ("cs-en", "en-cs")):
        train, score = found[f"train:{direction}.sinusoidal"], found[f"score:{direction}.sinusoidal"]
        source, target = direction.split("-")
        assert train.command[1].endswith(f"/{text}/data-bin")
        assert f"--source-lang {source} --target-lang {target}" in words(train)
        assert f"/{text}/raw/test.{target} --language {target}" in words(score)
        assert found[f"binarise:{text}"] in train.after
    assert words(found["check"]).count("--target-lang de") == 2  # whose BLEU is computed, and the model's
    assert len({stage.key() for stage in found.values()}) == len(found)


def test_a_single_direction_has_the_names_and_folders_that_it_always_had() -> None:
    one = stages(direction="de-en", corpus="builtin")
    assert {"corpus", "train:sinusoidal", "score:sinusoidal"} <= set(one)
    assert one["train:sinusoidal"].outputs == (OUTPUT / "checkpoints" / "sinusoidal",)
    other = stages(source_lang="de", target_lang="en", corpus="builtin")
    assert {name: stage.key() for name, stage in one.items()} == {name: stage.key() for name, stage in other.items()}
    assert default_output(settings(direction="de-en")) == "translation_wmt18/wmt18.de-en.posenc_transformer_small.1"


def test_wmt18_is_prepared_once_a_pair() -> None:
    found = stages("table4-shaw", newstest="sacrebleu", raw="/a/place")
    for pair in ("en-de", "en-cs"):
        assert f"prepare_wmt18.sh --pair {pair} --newstest sacrebleu --output" in words(found[f"prepare:{pair}"])
        assert words(found[f"prepare:{pair}"]).endswith(f"/{pair}/wmt18 --raw /a/place --workers 8")
    other = stages("table4-shaw", newstest="sacrebleu", workers="2")
    assert {name for name in found if found[name].key() != other[name].key()} == set()
    assert "--valid-set valid" in words(found["corpus:en-cs"])


def test_a_prepared_folder_names_its_validation_set_valid(tmp_path: Path) -> None:
    assert settings(corpus=str(tmp_path)).sets["valid"] == "val"
    (tmp_path / "corpus.json").write_text("{}")
    assert settings(corpus=str(tmp_path)).sets["valid"] == "valid"
    assert settings(corpus=str(tmp_path), valid_set="dev").sets["valid"] == "dev"


def test_an_earlier_run_that_is_not_there_is_missed_before_the_training() -> None:
    found = stages(beside="/an/earlier run")
    assert Path("/an/earlier run/comparison.json") in found["check"].inputs
    assert words(found["compare"]).endswith("--beside /an/earlier run")
    assert stages()["train:sinusoidal"].key() == found["train:sinusoidal"].key()


# --- seeds


def test_another_seed_trains_what_is_missing_only() -> None:
    one, two = stages(pos_enc="none,rope"), stages(pos_enc="none,rope", seeds="1,2")
    assert {name for name in one if one[name].key() != two[name].key()} == {"compare"}
    assert {name for name in two if name not in one} == {
        f"{kind}:{name}.seed=2" for kind in ("train", "average", "generate", "score") for name in ("none", "rope")
    }
    assert "--seed 2 --save-dir" in words(two["train:none.seed=2"])
    assert words(two["measure"]).count("--checkpoint") == 2  # what an encoding costs is no matter of seeds


# --- an encoding for each stack


def test_each_stack_may_have_its_own_encoding() -> None:
    found = stages(pos_enc="sinusoidal,shaw[clip=4]/rope,t5/t5")
    assert "--pos-enc-encoder shaw --pos-enc-encoder-args clip=4 --pos-enc-decoder rope --seed" in words(
        found["train:shaw.clip=4--rope"]
    )
    assert "--pos-enc t5 --seed" in words(found["train:t5"])  # both alike


# --- lengths


def test_separate_vocabularies() -> None:
    """What is applied to a source, by fairseq-interactive too, are its own language's subwords."""
    given = {"separate": "true", "train__share-all-embeddings": "false", "direction": "en-de,de-en", "corpus": "x"}
    found = stages(pos_enc="rope", **given)
    assert "--separate" in words(found["subwords:en-de"])
    assert "--joined-dictionary" not in words(found["binarise:en-de"])
    assert "--share-all-embeddings" not in words(found["train:en-de.rope"])
    assert "en-de/subwords/model.en.model" in words(found["generate:en-de.rope"])
    assert "en-de/subwords/model.de.model" in words(found["generate:de-en.rope"])
    assert "codes.de" in words(stages(pos_enc="rope", subwords="fastbpe", **given)["generate:de-en.rope"])
    assert "--joined-dictionary" in words(stages()["binarise"])


def test_training_on_short_pairs_leaves_the_test_set_whole() -> None:
    given = {"train_longest_words": "12", "train__max-source-positions": "20", "train__max-target-positions": "24"}
    found = stages(**given)
    assert settings(**given).longest_training == 19
    assert "--longest-words 12" in words(found["corpus"])
    assert "--longest 256 --longest-training 19" in words(found["subwords"])
    assert "--skip-invalid-size-inputs-valid-test" in found["generate:sinusoidal"].command
    assert "--may-refuse" in found["score:sinusoidal"].command
    assert "--bound 12 --bound 15 --bound 18 --bound 24 --trained 12" in words(found["lengths"])
    assert "lengths" not in stages()
    assert "--may-refuse" not in stages(lengths="10,20")["score:sinusoidal"].command
    assert settings(lengths="20,10").length_bounds == [10, 20]
    assert ".12-words." in default_output(settings(**given))


# --- refusals


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"direction": "ende"}, "--direction ende: write SOURCE-TARGET"),
        ({"direction": "en-de,de-de"}, "both de"),
        ({"direction": "en-de,de-en", "source_lang": "cs"}, "are of one direction"),
        ({"preset": "base", "direction": "cs-de"}, "wmt18 is de-en and cs-en, both ways, not cs-de"),
        ({"seeds": "1,x"}, "--seeds is '1,x': a list of a whole number is wanted"),
        ({"pos_enc": "rope/t5/none"}, "one for both stacks, or ENCODER/DECODER"),
        ({"pos_enc": "rope/t6"}, "no position encoding 't6'"),
        ({"train_longest_words": "-1"}, "--train-longest-words is -1: 0 or more"),
        ({"corpus": "builtin", "newstest": "x"}, "--newstest is for --corpus wmt18"),
        ({"lengths": "0,10"}, "--lengths is 0,10: numbers of words from 1 on"),
        ({"separate": "true"}, "--separate gives each language its own dictionary: --train.share-all-embeddings false"),
        ({"train__source-lang": "de"}, "--train.source-lang is decided by --direction"),
        ({"generate__task": "translation"}, "--generate.task is decided by --generate.lenpen-form"),
    ],
)
def test_what_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(Refused, match=message.replace("'", ".")):
        stages(given.pop("preset", "small"), **given)


# --- what the stages make


def test_counts_of_pairs_that_are_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from recipes.lib.translation import parallel

    for name in ("train", "val", "test"):
        (tmp_path / f"{name}.en").write_text("a b c\na b\nc\na\n")
        (tmp_path / f"{name}.de").write_text("x\nx y z\ny z\nx\n")
    command = ["parallel", "--folder", str(tmp_path), "--output", str(tmp_path / "raw"), "--longest-words", "2"]
    command += "--source-lang en --target-lang de --train-set train --valid-set val --test-set test".split()
    monkeypatch.setattr("sys.argv", command)
    parallel.main()
    counts = json.loads((tmp_path / "raw" / "counts.json").read_text())
    assert counts["train"] == {"pairs": 2, "left out": 0, "because": "", "longer": 2, "longest": 2}
    assert counts["valid"]["pairs"] == 2
    assert counts["test"] == {"pairs": 4, "left out": 0, "because": ""}
    assert (tmp_path / "raw" / "train.de").read_text() == "y z\nx\n"


def test_refused_sentences_leave_no_score(tmp_path: Path) -> None:
    score = pytest.importorskip("recipes.lib.translation.score")
    (tmp_path / "out").write_text("D-2\t-1\tc d e f\nH-2\t-1\tx\nD-0\t-1\ta b\n")
    found = score.hypotheses(tmp_path / "out")
    assert found == {0: "a b", 2: "c d e f"}
    references = ["a b", "b", "c d e f"]
    assert score.score(found, references, "de", may_refuse=True)["refused"] == [1]
    assert score.score(found, references, "de", may_refuse=True)["bleu"] is None
    with pytest.raises(SystemExit, match="2 sentences were decoded, the test set has 3"):
        score.score(found, references, "de")
    assert "refused" not in score.score({**found, 1: "b"}, references, "de", may_refuse=True)


def test_bleu_by_length_and_who_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = pytest.importorskip("recipes.lib.translation.lengths")
    assert [one.label for one in lengths.buckets([2, 3, 6])] == ["1-2", "3", "4-6", "7+"]
    sources = ["a", "a b c d", "a b c d e f g h", "a b c"]
    references = ["x", "a b c d", "a b c d e f g h", "a b c x"]
    for name, text in (
        ("src", sources),
        ("ref", references),
        ("rope.de", references),
        ("abs.de", [*references[:2], "", "a"]),
    ):
        (tmp_path / name).write_text("".join(line + "\n" for line in text))
    (tmp_path / "rope.json").write_text("{}")
    (tmp_path / "abs.json").write_text(json.dumps({"refused": [2]}))
    (tmp_path / "measured.json").write_text(json.dumps({"abs": {"positions": [5, None]}}))
    command = (
        f"lengths --source {tmp_path}/src --reference {tmp_path}/ref --language de --bound 4 --bound 7 --trained 4"
    )
    command += f" --translations {tmp_path} --scores {tmp_path} --measured {tmp_path}/measured.json"
    command += f" --system rope:rope --system rope:rope --system abs:abs --output {tmp_path}/lengths"
    monkeypatch.setattr("sys.argv", command.split())
    lengths.main()
    found = json.loads((tmp_path / "lengths.json").read_text())
    rope, learned = found["systems"]["rope"], found["systems"]["abs"]
    assert [(row["words"], row["sentences"], round(row["bleu"])) for row in rope] == [("1-4", 3, 100), ("8+", 1, 100)]
    assert learned[0]["bleu"] < 100
    assert learned[1] == {"words": "8+", "sentences": 1, "bleu": None, "refused": 1}
    assert found["reasons"]["abs"].startswith("has positions for 5 pieces of the source and any number of the target")
    assert (tmp_path / "lengths.png").read_bytes().startswith(b"\x89PNG")


class Run:
    """What the stages before `compare` leave, invented."""

    references: ClassVar = [f"the cat number {n} sat on the old mat" for n in range(20)]
    cost: ClassVar[dict[str, Any]] = {
        **dict.fromkeys(("training_words_per_second", "translation_words_per_second"), 10.0),
        **dict.fromkeys(("training_time_ratio", "translation_time_ratio", "translation_memory_ratio"), 1.0),
        **dict.fromkeys(("translation_peak_mb", "translation_extra_mb"), 400.0),
        "parameters": 7,
        "positions": [None, None],
    }

    def __init__(self, output: Path) -> None:
        self.output = output

    def text(self, inner: str, language: str) -> None:
        self.write(self.output / inner / "raw" / f"test.{language}", self.references)

    def model(self, inner: str, slug: str, language: str, wrong: int, refused: tuple[int, ...] = ()) -> None:
        lines = [
            ("no idea" if n < wrong else line) if n not in refused else "" for n, line in enumerate(self.references)
        ]
        self.write(self.output / inner / "translations" / f"{slug}.{language}", lines)
        self.write(
            self.output / inner / "scores" / f"{slug}.json", [json.dumps({"refused": refused} if refused else {})]
        )
        name = f"train.{inner}.{slug}.done" if inner else f"train.{slug}.done"
        facts = {"command": f"fairseq-train {slug}", "commit": "c", "seconds": 120.0}
        self.write(self.output / ".stages" / name, [json.dumps(facts)])

    def measured(self, inner: str, *labels: str) -> None:
        self.write(self.output / inner / "measured.json", [json.dumps(dict.fromkeys(labels, self.cost))])

    @staticmethod
    def write(path: Path, lines: list[str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(line + "\n" for line in lines))


def compared(run: Run, monkeypatch: pytest.MonkeyPatch, *options: str) -> list[dict[str, Any]]:
    compare = pytest.importorskip("recipes.translation_wmt18.compare")
    monkeypatch.setattr("sys.argv", ["compare", "--output", str(run.output), "--seed", "1", *options])
    compare.main()
    assert (run.output / "bleu.png").read_bytes().startswith(b"\x89PNG")
    found: list[dict[str, Any]] = json.loads((run.output / "comparison.json").read_text())
    return found


def test_scores_of_seeds_are_means_and_p_is_the_largest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path)
    run.text("", "de")
    run.measured("", "sinusoidal", "diet-rel")
    for slug, wrong in (("sinusoidal", 10), ("diet-rel", 1), ("sinusoidal.seed=2", 9), ("diet-rel.seed=2", 9)):
        run.model("", slug, "de", wrong)
    options = "--direction en de --trained-seed 1 --trained-seed 2 --pos-enc sinusoidal --pos-enc diet-rel".split()
    first, second = compared(run, monkeypatch, *options, "--differs", "text, model")
    assert second["BLEU"] == pytest.approx(sum(second["BLEU of seeds"]) / 2, abs=0.01)
    assert first["p"] is None
    assert second["p of seeds"][0] < 0.05 < second["p of seeds"][1] == second["p"]
    assert (first["paper"], second["paper"], first["differs from the paper"]) == (39.00, 39.47, "text, model")
    assert second["sd"] > first["sd"] > 0
    assert second["seeds"] == [1, 2]
    assert second["minutes"] == 2.0
    assert second["command"] == "fairseq-train diet-rel"


def test_directions_and_earlier_runs_stand_in_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, run = Run(tmp_path / "old"), Run(tmp_path / "new")
    old.text("", "de")
    old.measured("", "none")
    old.model("", "none", "de", 3)
    one = ["--trained-seed", "1", "--pos-enc", "none"]
    compared(old, monkeypatch, *one, "--direction", "en", "de")
    for inner, language in (("de-en", "en"), ("en-cs", "cs")):
        run.text("de-en" if language == "en" else inner, language)
        run.measured(inner, "none", "learned")
        run.model(inner, "none", language, 5)
        run.model(inner, "learned", language, 0, refused=(0, 3))
    both = [*one, "--pos-enc", "learned", "--direction", "de", "en", "--direction", "en", "cs"]
    found = compared(run, monkeypatch, *both, "--beside", str(old.output))
    names = [(row["direction"], row["encoding"]) for row in found]
    assert names == [
        ("de-en", "none"),
        ("de-en", "learned"),
        ("en-cs", "none"),
        ("en-cs", "learned"),
        ("en-de", "none"),
    ]
    assert found[1]["BLEU"] is None
    assert found[1]["signature of BLEU"] is None
    assert found[4]["BLEU"] > found[0]["BLEU"]
    with pytest.raises(SystemExit, match="en-de none is there already"):
        compared(old, monkeypatch, *one, "--direction", "en", "de", "--beside", str(old.output))
    with pytest.raises(SystemExit, match=r"no/comparison.json: no such file: --beside is for folders of finished runs"):
        compared(old, monkeypatch, *one, "--direction", "en", "de", "--beside", "no")


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="this system does not say")
def test_memory_is_that_of_a_fork() -> None:
    memory = pytest.importorskip("recipes.lib.translation.memory")

    def step() -> None:
        with mmap(-1, 64 << 20, MAP_PRIVATE | MAP_ANONYMOUS) as pages:  # new ones: a heap may have some to spare
            pages[::4096] = bytes(len(pages) // 4096)

    found = memory.forked(memory.of_process, step)
    assert 60 < found.extra < 90
    assert found.peak > found.extra
    assert memory.forked(os.abort) is None


# --- the report


def test_the_report_tells_text_lengths_and_models_of_each_direction(tmp_path: Path) -> None:
    given = {"direction": "en-de,de-en", "train_longest_words": "12", "corpus": "x", "pos_enc": "rope,learned"}
    found = settings("lengths", **given)
    split = {"pairs": 5, "left out": 0, "because": ""}
    raw = {"train": {**split, "longer": 1200, "longest": 12}, "valid": {**split, "longer": 0}, "test": split}
    Run.write(tmp_path / "en-de" / "raw" / "counts.json", [json.dumps(raw)])
    pieces = {"train": {"pairs": 4, "left out": 1}, "valid": split, "test": split}
    Run.write(tmp_path / "en-de" / "subwords" / "counts.json", [json.dumps(pieces)])
    rows = [
        {"words": "1-12", "sentences": 1633, "bleu": 20.04, "refused": 0},
        {"words": "13+", "sentences": 9, "bleu": None, "refused": 7},
    ]
    lengths = {"trained": 12, "systems": {"learned": rows}, "reasons": {"learned": "has positions for 20 pieces"}}
    for direction in ("en-de", "de-en"):
        Run.write(tmp_path / direction / "lengths.json", [json.dumps(lengths)])
    told = "\n".join(remarks(found, tmp_path))
    assert "Text (en-de): pairs: train 5, valid 5, test 5; 1,200 of train longer than 12 words. In subwords" in told
    assert "train 4, valid 5, test 5; 1 left out of training (over-long or without a piece)" in told
    assert "not comparable with this run, which differs in text, model, updates, decoding" not in told
    assert "which differs in text, model, updates." in told
    assert "| learned | 20.0 | refused 7 |" in told
    assert "| BLEU by words of the source | 1-12 (n = 1,633) | 13+ (n = 9) |" in told
    assert "Refused: `learned` has positions for 20 pieces." in told
    assert "(de-en/lengths.png)" in told
    scores = [("en-de", "rope", 9.0), ("en-de", "learned", None), ("de-en", "learned", 8.0)]
    made = [dict(zip(("direction", "encoding", "BLEU"), one, strict=True)) for one in scores]
    Run.write(tmp_path / "comparison.json", [json.dumps(made)])
    commands = list(hints(found, tmp_path, "results/x").values())
    assert [command.partition(" ")[0] for command in commands] == 2 * ["fairseq-interactive", commands[1].split()[0]]
    assert "--path results/x/en-de/averaged/rope.pt" in commands[0]
    assert commands[3].endswith("translate.sh --run results/x --direction de-en --pos-enc learned < FILE")
