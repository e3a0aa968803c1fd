"""Test the demo: its sentences, its plan, and that a run resumes and repeats only what it must."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from fairseq_posenc.analysis import results
from recipes.demo import __main__ as demo
from recipes.demo import report
from recipes.demo.__main__ import DEMO
from recipes.demo.plan import make_plan
from recipes.demo.settings import Settings
from recipes.lib import records
from recipes.lib.command import main
from recipes.lib.invented import sentences
from recipes.lib.seeds import Seeds
from recipes.lib.settings import load

ROOT = Path(__file__).resolve().parents[3]
SIZES = {"train": 1500, "valid": 50, "test": 100}


# --- the sentences


@pytest.fixture(scope="module")
def splits() -> dict[str, list[sentences.Pair]]:
    return sentences.generate(SIZES, seed=1)


def test_a_seed_makes_the_same_sentences_and_another_seed_others(splits):
    assert sentences.generate(SIZES, seed=1) == splits
    assert sentences.generate(SIZES, seed=2) != splits


def test_no_sentence_of_one_split_is_in_another(splits):
    sources = [pair.source for pairs in splits.values() for pair in pairs]
    assert len(sources) == len(set(sources)) == sum(SIZES.values())


def test_both_sides_are_text_as_people_write_it(splits):
    for text in itertools.chain.from_iterable(splits["test"]):
        assert text[0].isupper()
        assert text.endswith(".")
        assert "  " not in text


def words(text: str) -> list[str]:
    return text.lower().rstrip(".").split()


def bag(text: str) -> Counter[str]:
    return Counter(words(text))


def test_swapped_nouns_give_the_same_words_but_a_different_translation():
    """Swap subject and object, so that a model which sees a bag of words cannot tell the two sentences apart."""
    lexicon = sentences.Lexicon()
    grammar = sentences.Grammar(random.Random(1), lexicon)
    for _ in range(300):
        subject, verb, object_, adverb = grammar.parts()
        original = sentences.put(lexicon, subject, verb, object_, adverb)
        swapped = sentences.put(lexicon, object_, verb, subject, adverb)
        assert bag(original.source) == bag(swapped.source)
        assert original.target != swapped.target


def test_the_verb_agrees_with_a_subject_that_stands_far_away():
    lexicon = sentences.Lexicon()
    dog, cats, queen = (lexicon.noun(index, plural=index == 1) for index in (0, 1, 10))
    clause = sentences.Clause(1, sentences.Phrase(cats), head_acts=True)
    pair = sentences.put(lexicon, sentences.Phrase(dog, clause=clause), 0, sentences.Phrase(queen), None)
    assert pair.source == "The dog that chased the cats saw the queen."
    assert len({noun.ending for noun in (dog, cats, queen)}) == 3
    assert words(pair.target)[-1] == lexicon.verbs[0] + "t" + dog.ending


def test_the_translation_is_a_function_of_the_ordered_sentence():
    """Check that each source sentence has one target. Different sources may have the same target."""
    first, second = (sentences.generate({"train": 4000}, seed=seed)["train"] for seed in (1, 2))
    known = dict(first)
    shared = [pair for pair in second if pair.source in known]
    assert shared
    assert all(known[pair.source] == pair.target for pair in shared)


# --- settings and plan


def test_presets_load_and_none_is_always_compared():
    assert {"demo", "eight", "smoke"} <= set(DEMO.presets())
    assert load(DEMO, texts={"encodings": "shaw,t5"}).encodings == ["none", "shaw", "t5"]
    assert len(load(DEMO).encodings) >= 4
    assert len(load(DEMO, "eight").encodings) == 8


def test_a_changed_setting_changes_just_the_keys_that_depend_on_it(tmp_path):
    old = load(DEMO)
    new = replace(old, generate={**old.generate, "beam": 5})
    changed = changed_stages(old, new, tmp_path)
    kinds = {name.partition(":")[0] for name in changed}
    assert kinds == {"generate", "score", "report"}
    assert "corpus" in changed_stages(old, replace(old, seed=2), tmp_path)


def changed_stages(old: Settings, new: Settings, output: Path) -> set[str]:
    plans = [make_plan(settings, output, "results/demo").stages() for settings in (old, new)]
    return {a.name for a, b in zip(*plans, strict=True) if a.key() != b.key()}


def test_no_sentence_is_lost_to_the_batch_size():
    commands = [s.command for s in make_plan(load(DEMO), ROOT, "x").stages()]
    for command in commands:
        if command[0] in ("fairseq-train", "fairseq-generate"):
            assert command[command.index("--required-batch-size-multiple") + 1] == "1"


@pytest.mark.parametrize("option", ["--help", "--list", "--dry-run"])
def test_help_list_and_dry_run_need_no_data(option, tmp_path, capsys):
    with contextlib.suppress(SystemExit):  # argparse exits after --help
        assert main(DEMO, ["--output", str(tmp_path / "new"), option]) == 0
    shown = capsys.readouterr().out
    assert {"--help": "--encodings", "--list": "open  corpus", "--dry-run": "fairseq-train"}[option] in shown
    assert not (tmp_path / "new").exists()


def test_the_dry_run_prints_every_command(tmp_path, capsys):
    main(DEMO, ["--dry-run", "--output", str(tmp_path), "--encodings", "shaw"])
    shown = capsys.readouterr().out
    for stage in make_plan(load(DEMO, texts={"encodings": "shaw"}), tmp_path, os.path.relpath(tmp_path, ROOT)).stages():
        assert f"# {stage.name}\n{stage.command[0]}" in shown


# --- the report


def test_rows_have_the_promised_keys_and_the_best_comes_first(tmp_path):
    rows = report.collect(finished_run(tmp_path, none=12.0, shaw=90.0), ["none", "shaw"], Seeds((1,), 1))
    for row in rows:
        assert {"encoding", "bleu", "signature", "parameters", "speed_ratio", "command", "commit"} <= row.keys()
    assert [row["encoding"] for row in rows] == ["shaw", "none"]
    assert rows[0]["parameters"] == 128
    assert "| shaw       |   90.0 |               1.2 |" in report.table(rows)


def test_bleu_has_the_interval_of_the_sentences_or_of_the_seeds(tmp_path):
    rows = report.collect(finished_run(tmp_path, shaw=90.0, **{"shaw.seed=2": 92.0}), ["shaw"], Seeds((1,), 1))
    assert (rows[0]["±"], results.interval(rows[0], "bleu")) == (1.25, (1.25, 1))
    rows = report.collect(tmp_path, ["shaw"], Seeds((1, 2), 1))
    assert results.interval(rows[0], "bleu") == (pytest.approx(12.706, abs=1e-3), 2)  # t(0.975, 1) * sqrt(2) / sqrt(2)
    assert "12.7 |" in report.table(rows)


def finished_run(folder: Path, **bleu: float) -> Path:
    (folder / "scores").mkdir()
    (folder / ".stages").mkdir()
    for name, value in bleu.items():
        (folder / "scores" / name).write_text(json.dumps({"bleu": value, "±": 1.25, "signature": "nrefs:1"}))
        marker = {
            "command": f"fairseq-train --pos-enc {name}",
            "commit": "abc",
            "started": 0,
            "ended": 60,
            "seconds": 60,
        }
        for stage in ("train", "generate"):
            (folder / ".stages" / f"{stage}.{name}.done").write_text(json.dumps(marker))
    measured = {name: {"parameters_added": 128 * (name != "none"), "training_time_ratio": 1.0} for name in bleu}
    (folder / "measured.json").write_text(json.dumps(measured))
    return folder


def test_busy_time_counts_parallel_stages_once_and_no_pause():
    assert records.covered([(0, 60), (30, 90), (600, 630)]) == pytest.approx(120)


@pytest.mark.parametrize(
    ("none", "best", "status"), [(12, 90, 0), (0, 90, 1), (85, 90, 1)], ids=["good", "impossible", "needless"]
)
def test_the_demo_fails_if_its_claim_is_wrong(none, best, status, capsys):
    rows = [{"encoding": "none", "bleu": none}, {"encoding": "shaw", "bleu": best}]
    assert demo.claim(rows, least_gap=10) == status
    if status:
        assert f"shaw, {best:.1f}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("none", "best", "least_gap", "text"),
    [
        (12.0, 90.0, 10, "still translates the words (`none`: 12.0 BLEU), but must guess"),
        (0.0, 0.0, -100, "no encoding has more than the 0.0 BLEU of `none`. These scores say nothing"),
        (0.0, 90.0, 10, "do not show clearly that word order matters: `none` has 0.0 BLEU"),
        (85.0, 90.0, 10, "do not show clearly that word order matters: `none` has 85.0 BLEU"),
        (None, 90.0, 10, "diverged, so `none` has no score"),
    ],
)
def test_the_report_claims_what_the_scores_show(none, best, least_gap, text):
    rows = [{"encoding": "shaw", "bleu": best}, {"encoding": "none", "bleu": none}]
    assert text in report.meaning(rows, least_gap)


def test_without_the_stage_measure_the_report_has_no_costs(tmp_path):
    finished_run(tmp_path, none=12.0, shaw=90.0)
    (tmp_path / "measured.json").write_text("of an earlier run")
    rows = report.collect(tmp_path, ["none", "shaw"], Seeds((1,), 1), unmeasured=True)
    assert "parameters" not in report.table(rows)
    names = [stage.name for stage in make_plan(load(DEMO, texts={"measure": "false"}), tmp_path, "x").stages()]
    assert "measure" not in names
    assert "report" in names
