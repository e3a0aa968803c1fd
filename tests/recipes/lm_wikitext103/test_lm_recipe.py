"""Test the language model recipe: its plan, what is refused, the papers' numbers, and the words that it reads."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support_recipes import OUTPUT, Planned, value

from recipes.lib.encodings import parse
from recipes.lib.package import figures
from recipes.lib.recipe import shown
from recipes.lib.values import Refused
from recipes.lm_wikitext103.__main__ import LM_WIKITEXT103
from recipes.lm_wikitext103.compare import papers

PAPERS = [name for name in LM_WIKITEXT103.presets() if name.startswith("wt103")]
PLANNED = Planned(LM_WIKITEXT103)
settings, stages = PLANNED.settings, PLANNED.stages


# --- the plan


@pytest.mark.parametrize("preset", LM_WIKITEXT103.presets())
def test_every_preset_plans_every_stage(preset: str) -> None:
    planned = stages(preset, pos_enc="xl,shaw[clip=8]", corpus="builtin")
    kinds = list(dict.fromkeys(name.partition(":")[0] for name in planned))
    assert kinds == ["check", "builtin", "prepare", "binarise", "train", "evaluate", "compare"]


@pytest.mark.parametrize("split", ["test", "valid"])
def test_the_comparison_knows_the_split(split: str) -> None:
    assert value(stages("wt103", split=split)["compare"], "--split") == split


def test_wikitext103_is_fetched_and_its_types_counted() -> None:
    planned = stages("wt103")
    assert "wikitext-103/wikitext-103-v1.zip" in planned["fetch"].command
    assert value(planned["prepare"], "--types") == "267735"
    assert value(planned["binarise"], "--padding-factor") == "1"


@pytest.mark.parametrize("preset", PAPERS)
def test_presets_have_the_settings_of_the_papers(preset: str) -> None:
    """Compare with the settings in the LFHC/GCDF paper (Qu et al. 2021, Table 4)."""
    loaded = settings(preset)
    theirs = {figure.row: figure.value for figure in figures("LFHC", table="Table 4", column="WT103")}
    wanted = {"lr": theirs["lr rate"], "clip-norm": theirs["clip norm"], "max-update": theirs["maximum steps"]}
    wanted |= {"warmup-updates": theirs["warmup steps"]}
    assert {**wanted, "lr-scheduler": "cosine"}.items() <= loaded.train.items()
    assert loaded.streams == theirs["batch size"]
    assert (loaded.length, loaded.mem_train, loaded.mem_eval) == (150, 150, [150, 640])
    assert loaded.train["dropout"] == (0.1 if preset == "wt103-dropout01" else theirs["dropout"])


def test_every_run_of_a_paper_sweep_has_a_published_score() -> None:
    for preset in ("wt103-k-shaw", "wt103-k-lfhc"):
        clips = [re.search(r"clip=(\d+)", label)[1] for label in settings(preset).pos_enc]
        assert clips == ["4", "8", "12", "16"]
        assert all(papers(encoding, memory) for encoding in settings(preset).encodings for memory in (150, 640))


def test_a_memory_longer_than_a_segment_is_evaluated_as_published() -> None:
    planned = stages("wt103")
    short, long = planned["evaluate:xl.biases=tied.150"], planned["evaluate:xl.biases=tied.640"]
    assert (value(short, "--segment"), value(long, "--segment")) == ("150", "64")
    assert "--same-length" not in short.command
    assert "--same-length" in long.command
    assert value(long, "--clamp") == "400"
    assert "--clamp" not in short.command
    assert "--clamp" not in planned["evaluate:t5.640"].command


def test_encodings_without_memory_are_trained_without_it_with_a_note() -> None:
    planned = stages(pos_enc="xl,learned,learned+t5")
    assert value(planned["train:xl"], "--mem-length") == "150"
    assert value(planned["train:learned"], "--mem-length") == value(planned["train:learned+t5"], "--mem-length") == "0"
    assert [name for name in planned if name.startswith("evaluate:learned.")] == ["evaluate:learned.0"]
    plan = LM_WIKITEXT103.plan(settings(pos_enc="xl,learned"), OUTPUT, shown(OUTPUT))
    assert any("without memory: learned." in note for note in plan.notes)


def test_published_scores_are_shown_for_the_papers_models() -> None:
    """Shaw has one table per head, as many parameters as LFHC. What the paper calls T5 has distances up to M."""
    for label in ("shaw[clip=8,share=none]", "shaw[share=none,clip=8]"):
        assert papers(parse(label), 150) == 25.34
    for label in (
        "shaw[clip=8]",
        "shaw[clip=8,share=none,layers=1-4]",
        "diet-rel[clip=8]",
        "diet-rel[clip=150,share=all]",
        "t5",
        "learned",
    ):
        assert papers(parse(label), 150) is None
    assert papers(parse("diet-rel[clip=150]"), 640) == 25.02
    assert papers(parse("xl"), 0) is None
    labels = [encoding.label for preset in PAPERS for encoding in settings(preset).encodings]
    assert all(papers(parse(label), 150) for label in labels if label != "t5")


def test_shaw_has_as_many_parameters_as_lfhc() -> None:
    pytest.importorskip("torch")
    from fairseq_posenc.encodings import StackShape, build

    shape = StackShape(layers=16, heads=10, dim=410, max_length=300, causal=True)
    counts = [
        sum(parameter.numel() for parameter in build(encoding.name, encoding.args, shape).parameters())
        for encoding in map(parse, ("shaw[clip=16,share=none]", "lfhc[clip=16]"))
    ]
    assert counts == [216_480, 216_480]


@pytest.mark.parametrize("types", [5, 6])
def test_types_are_those_of_a_prepared_dictionary(tmp_path: Path, types: int) -> None:
    """Count the words, <unk> and <eos>, but not the symbols that fairseq adds to fill the dictionary."""
    (tmp_path / "dict.txt").write_text("a 2\nb 1\nc 1\nmadeupword0000 0\n")
    if types == 5:
        assert settings(corpus=str(tmp_path), types="5").types == 5
    else:
        with pytest.raises(Refused, match=r"--types 6: .*dict.txt has 5"):
            settings(corpus=str(tmp_path), types="6")


def test_a_different_memory_in_evaluation_repeats_no_training() -> None:
    old, new = stages(mem_eval="0"), stages(mem_eval="0,640")
    assert {name for name in old if old[name].key() != new[name].key()} <= {"check", "compare"}


# --- refusals


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"corpus": "no-such"}, "--corpus no-such: the folder does not exist. Known corpora are wikitext103"),
        ({"mem_eval": "-1"}, "--mem-eval -1:"),
        ({"mem_train": "-1"}, "--mem-train -1: the value must be at least 0"),
        ({"train__mem-length": "8"}, "use --mem-train"),
        ({"train__tokens-per-sample": "8"}, "use --length"),
        ({"train__max-tokens": "8"}, "use --train.batch-size"),
        ({"train__same-length": "true"}, "use --eval-same-length"),
        ({"types": "9"}, "--types has no effect: --corpus builtin"),
        ({"pos_enc": "xk"}, "no position encoding 'xk'"),
    ],
)
def test_wrong_settings_are_refused(changes: dict[str, str], message: str) -> None:
    with pytest.raises(Refused, match=message):
        stages(**changes)


def test_the_splits_that_a_corpus_lacks_are_named_together(tmp_path: Path) -> None:
    (tmp_path / "wiki.train.tokens.gz").touch()
    with pytest.raises(Refused, match=r"no text of these splits\. Add valid\.txt and test\.txt\."):
        settings(corpus=str(tmp_path)).refuse_missing()
    for name in ("valid.txt", "test.txt.gz"):
        (tmp_path / name).touch()
    settings(corpus=str(tmp_path)).refuse_missing()


def test_a_run_ends_with_commands_that_evaluate_a_model_and_generate_text(tmp_path: Path) -> None:
    row = {"encoding": "xl", "perplexity": 9.5, "checkpoint": "xl", "memory": 4, "segment": 8, "same length": False}
    (tmp_path / "comparison.json").write_text(json.dumps([{**row, "options": "clamp=20"}]))
    evaluate, generate = LM_WIKITEXT103.hints(settings(corpus="builtin"), tmp_path).values()
    assert """--model-overrides '{"pos_enc_args": "clamp=20"}'""" in evaluate
    assert f"generate-text --checkpoint {tmp_path}/checkpoints/xl/checkpoint_best.pt --prompt ''" in generate
