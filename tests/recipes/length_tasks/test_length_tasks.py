"""Test the recipe of the length tasks: each task against an independent solution, the splits, the plan, and a run."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from integration import support
from matplotlib.figure import Figure
from support_recipes import Planned, value

from fairseq_posenc.encodings import names, spec_of
from recipes.length_tasks import compare, drawing, evaluate, generate
from recipes.length_tasks.__main__ import LENGTH_TASKS, remarks
from recipes.length_tasks.settings import Model
from recipes.length_tasks.tasks import commands, pcfg
from recipes.length_tasks.tasks.registry import TASKS, task
from recipes.length_tasks.tasks.task import END, SPLITS, UNCOUNTED, Example, Sizes
from recipes.lib.encodings import parse
from recipes.lib.recipe import ROOT
from recipes.lib.settings import load
from recipes.lib.stages import Stage, read_json
from recipes.lib.values import Refused

SIZES = Sizes(8, (6, 8, 12), {"train": 300, "valid": 20, "within": 20, "beyond": 20})
PLANNED = Planned(LENGTH_TASKS, "smoke", ROOT / "results" / "length_tasks" / "test")
settings, stages = PLANNED.settings, PLANNED.stages


def examples(name: str) -> dict[str, list[Example]]:
    return task(name).split(random.Random(5), SIZES)


# --- every task against an independent solution, which reads the tokens only


def counted(example: Example) -> str:
    """Return the counted tokens of an output; those of a decoder end with </s> if it must say where it stops."""
    return " ".join(token for token in example.output if token != UNCOUNTED)


def number(tokens: list[str]) -> int:
    return int("".join(tokens))


def sides(tokens: list[str]) -> tuple[list[str], list[str]]:
    prompt = tokens[: tokens.index("=")]
    plus = prompt.index("+")
    return prompt[:plus], prompt[plus + 1 :]


def prompt(tokens: list[str]) -> list[str]:
    return tokens[: tokens.index("=")]


def added(tokens: list[str]) -> str:
    first, second = sides(tokens)
    return " ".join(str(number(first) + number(second)).zfill(len(first) + 1)) + f" {END}"


def added_backwards(tokens: list[str]) -> str:
    first, second = sides(tokens)
    return " ".join(reversed(str(number(first) + number(second)).zfill(len(first) + 1))) + f" {END}"


def added_with_hints(tokens: list[str]) -> str:
    first, second = sides(tokens)
    assert first[::2] == second[::2]
    total = str(number(first[1::2][::-1]) + number(second[1::2][::-1])).zfill(len(first) // 2 + 1)[::-1]
    start = int(first[0][1:])
    assert first[::2] == [f"h{start + place}" for place in range(len(first) // 2)]
    return " ".join(f"h{start + place} {digit}" for place, digit in enumerate(total)) + f" {END}"


def flipped(tokens: list[str]) -> str:
    pairs = [*zip(tokens[::2], [*tokens[1::2], ""], strict=True)]
    written, read = "", []
    for kind, bit in pairs:
        written = bit if kind == "w" else written
        if kind == "r":
            read.append(written)
    return " ".join(read)


def recalled(tokens: list[str]) -> str:
    middle = tokens.index("=")
    value = dict(zip(tokens[:middle:2], tokens[1:middle:2], strict=True))
    return " ".join(value[key] for key in tokens[middle + 1 :: 2])


def unlocked(tokens: list[str]) -> str:
    start = tokens.index("key") + 2
    return " ".join(tokens[start : start + 5]) + f" {END}"


def acted(tokens: list[str]) -> str:
    """Interpret a command of SCAN from the left, recursively."""
    for word in ("and", "after"):
        if word in tokens:
            place = tokens.index(word)
            parts = acted(tokens[:place]), acted(tokens[place + 1 :])
            return " ".join(parts if word == "and" else parts[::-1])
    if tokens[-1] in ("twice", "thrice"):
        return " ".join([acted(tokens[:-1])] * (2 if tokens[-1] == "twice" else 3))
    verb = [] if tokens[0] == "turn" else [tokens[0].upper()]
    if len(tokens) == 1:
        return " ".join(verb)
    turn = f"{tokens[-1][0].upper()}TURN"
    return " ".join(
        {2: [turn, *verb], "opposite": [turn, turn, *verb], "around": [turn, *verb] * 4}[
            2 if len(tokens) == 2 else tokens[1]
        ]
    )


def evaluated(tokens: list[str]) -> str:
    """Evaluate an expression of PCFG SET from its end, with a stack of strings."""
    stack: list[list[str]] = []
    text: list[str] = []
    unary: dict[str, Callable[[list[str]], list[str]]] = {
        "copy": list,
        "reverse": lambda x: [*reversed(x)],
        "shift": lambda x: [*x[1:], x[0]],
        "swap_first_last": lambda x: [x[-1], *x[1:-1], x[0]][: len(x)],
        "repeat": lambda x: x * 2,
        "echo": lambda x: x + x[-1:],
    }
    for token in reversed(tokens):
        if token in pcfg.LETTERS:
            text.insert(0, token)
            continue
        if text:
            stack.append(text)
            text = []
        if token in unary:
            stack.append(unary[token](stack.pop()))
        elif token != ",":
            first, second = stack.pop(), stack.pop()
            joined = {"append": first + second, "prepend": second + first}
            stack.append({**joined, "remove_first": second, "remove_second": first}[token])
    return " ".join(stack.pop() if stack else text)


SOLUTIONS: dict[str, Callable[[list[str]], str]] = {
    "copy": lambda tokens: " ".join([*prompt(tokens), END]),
    "reverse": lambda tokens: " ".join([*reversed(prompt(tokens)), END]),
    "sort": lambda tokens: " ".join([*sorted(prompt(tokens), key=int), END]),
    "parity": lambda tokens: str(sum(map(int, prompt(tokens))) % 2),
    "flip-flop": flipped,
    "addition": added,
    "addition-reversed": added_backwards,
    "addition-hints": added_with_hints,
    "recall": recalled,
    "passkey": unlocked,
    "reverse-tags": lambda tokens: " ".join(reversed(tokens)),
    "sort-tags": lambda tokens: " ".join(sorted(tokens)),
    "scan-length": acted,
    "scan-template": acted,
    "pcfg": evaluated,
}


@pytest.mark.parametrize("name", TASKS)
def test_outputs_are_those_of_an_independent_solution(name: str) -> None:
    assert name in SOLUTIONS, (
        f"{name} has no independent solution: add a function of its input to SOLUTIONS in this file"
    )
    drawn = [example for split in examples(name).values() for example in split[:300]]
    assert [counted(example) for example in drawn] == [SOLUTIONS[name](example.input) for example in drawn]


@pytest.mark.parametrize("name", TASKS)
def test_a_decoder_reads_its_own_answer_and_an_encoder_tags_each_token(name: str) -> None:
    for example in examples(name)["train"]:
        if task(name).kind == "encoder-decoder":
            assert UNCOUNTED not in example.output
            continue
        assert len(example.input) == len(example.output)
        if task(name).kind == "decoder":  # each counted token, except the last one, is also the next token of the input
            pairs = zip(example.output[:-1], example.input[1:], strict=True)
            assert all(target in (UNCOUNTED, following) for target, following in pairs)


@pytest.mark.parametrize("name", [name for name in TASKS if task(name).longest])
def test_test_sets_have_their_lengths_and_no_example_of_training(name: str) -> None:
    splits = examples(name)
    assert {split: len(rows) for split, rows in splits.items()} == {
        "train": 300,
        "valid": 20,
        "within": 2 * 20,
        "beyond": 20,
    }
    assert {example.length for example in splits["within"]} == {6, 8}
    assert {example.length for example in splits["beyond"]} == {12}
    assert max(example.length for example in splits["train"] + splits["valid"]) == 8
    tested = [tuple(example.input) for example in splits["within"] + splits["beyond"]]
    assert len(set(tested)) == len(tested)
    assert not set(tested) & {tuple(example.input) for example in splits["train"] + splits["valid"]}


def test_the_same_seed_generates_the_same_examples() -> None:
    assert examples("copy") == examples("copy")
    assert task("copy").split(random.Random(6), SIZES) != examples("copy")


@pytest.mark.parametrize(
    ("name", "tested", "words"),
    [
        ("addition-hints", (10, 20), "at most 19 digits here, not 20. Lower --longest or --tested."),
        ("recall", (10, 33), "There are 32 keys, too few for 33 pairs. Lower --longest or --tested."),
        ("flip-flop", (1, 10), "at least 2 instructions, not 1. Raise --longest or --tested."),
    ],
)
def test_lengths_that_a_task_cannot_have_are_refused(name: str, tested: tuple[int, ...], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        task(name).split(random.Random(5), Sizes(10, tested, dict.fromkeys(SPLITS, 1)))


def test_too_few_examples_are_refused() -> None:
    with pytest.raises(ValueError, match="too few different examples of length 2"):
        task("parity").split(random.Random(1), SIZES._replace(tested=(2,)))


@pytest.mark.parametrize(("name", "train", "test"), [("scan-length", 16_990, 3_920), ("scan-template", 15_225, 4_476)])
def test_the_published_sizes_of_scan(name: str, train: int, test: int) -> None:
    """The sizes are those of the files that Lake and Baroni published."""
    splits = examples(name)
    assert len([*commands.commands()]) == 20_910
    assert sum(len(splits[split]) for split in ("train", "valid", "within")) == train
    assert len(splits["beyond"]) == test
    if name == "scan-length":
        assert {example.length for example in splits["beyond"]} == {24, 25, 26, 27, 28, 30, 32, 33, 36, 40, 48}


# --- the plan


@pytest.mark.parametrize("preset", LENGTH_TASKS.presets())
def test_every_preset_trains_each_model_with_each_of_its_seeds(preset: str) -> None:
    chosen, planned = settings(preset), stages(preset)
    trained = [name for name in planned if name.startswith("train:")]
    runs = sum(len(chosen.seeds_of(model).seeds) for model in chosen.models)
    assert len(trained) == len(chosen.tasks) * runs
    assert [name.replace("evaluate", "train") for name in planned if name.startswith("evaluate:")] == trained
    assert list(planned)[-1] == "compare"


def test_the_preset_all_has_every_encoding_that_works_in_decoders() -> None:
    labels = {model.label for model in settings("all").models} - {"rope-random"}
    able = {spec_of(name) for name in names() if "decoder" in parse(name).stacks}
    missing = able - {"sentence-restart"} - labels  # the examples have no ends of sentences
    assert not missing, f"add these encodings to `once` in recipes/length_tasks/conf/all.toml: {sorted(missing)}"
    assert labels <= able


def test_random_positions_and_encodings_of_one_seed() -> None:
    options = {"pos_enc": "rope,rope-random", "once": "shaw,rope", "random_range": "600", "seeds": "1,2"}
    planned = stages(tasks="copy", **options)
    assert [name for name in planned if name.startswith("train:")] == [
        *("train:copy.rope", "train:copy.rope.seed=2", "train:copy.rope-random", "train:copy.rope-random.seed=2"),
        "train:copy.shaw",
    ]
    flagged = {name for name, stage in planned.items() if "--pos-enc-random" in stage.command}
    assert flagged == {"train:copy.rope-random", "train:copy.rope-random.seed=2"}


def test_an_encoder_of_an_encoder_decoder_has_sinusoids_if_the_encoding_works_in_decoders_only() -> None:
    planned = stages(tasks="copy,scan-length", pos_enc="fox,rope")
    flags = {name: " ".join(stage.command) for name, stage in planned.items()}
    assert "--pos-enc-encoder sinusoidal --pos-enc-decoder fox" in flags["train:scan-length.fox"]
    assert "--pos-enc fox" in flags["train:copy.fox"]
    assert "--pos-enc rope" in flags["train:scan-length.rope"]
    sentences = remarks(settings(tasks="copy,scan-length", pos_enc="fox,rope"), Path())
    assert sentences[-1].startswith("fox: this encoding works in decoders only, so the encoders of scan-length use")


@pytest.mark.parametrize(
    ("of", "encoding", "stack"), [("copy", "linformer", "decoder"), ("sort-tags", "fox", "encoder")]
)
def test_an_encoding_that_does_not_work_in_the_model_of_a_task_is_refused(of: str, encoding: str, stack: str) -> None:
    with pytest.raises(
        Refused, match=rf"--pos-enc {encoding}: .* in the {stack} of a model, which the task {of} needs\."
    ):
        settings(tasks=of, pos_enc=encoding)


def test_the_flags_of_a_kind_of_model_replace_those_of_every_training_run_with_a_note() -> None:
    options = {"tasks": "copy,scan-length", "encoder_decoder__max-update": "7", "train__max-update": "9"}
    notes = LENGTH_TASKS.plan(settings(**options), PLANNED.output, "results/length_tasks/test").notes
    assert notes == ("scan-length: --encoder-decoder.max-update 7 replaces --train.max-update 9.",)
    planned = stages(**options)
    for name, updates in (("copy", "9"), ("scan-length", "7")):
        train = planned[f"train:{name}.rope"]
        assert train.command.count("--max-update") == 1
        assert value(train, "--max-update") == updates


def test_a_flag_that_all_tasks_replace_is_refused() -> None:
    given = {"encoder_decoder__max-update": "7", "train__max-update": "9"}
    with pytest.raises(
        Refused, match=r"--train\.max-update has no effect: .* use --encoder-decoder\.max-update instead"
    ):
        settings(tasks="scan-length", **given)
    assert settings(tasks="scan-length,copy", **given).train["max-update"] == 9


def test_a_flag_in_a_file_that_all_tasks_replace_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "mine.toml"
    config.write_text('tasks = ["scan-length"]\n[train]\nmax-update = 9\n[encoder-decoder]\nmax-update = 7\n')
    with pytest.raises(Refused, match=r"--train\.max-update has no effect"):
        load(LENGTH_TASKS, "smoke", config)


def test_the_longest_length_of_any_task_can_be_set() -> None:
    assert "--longest 5 --tested 5 10" in " ".join(stages(tasks="sort", longest__sort="5")["prepare:sort"].command)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": "copi"}, "did you mean copy"),
        ({"tasks": ""}, "--tasks is empty"),
        ({"tested": "1,x"}, "--tested: 'x' is not a number"),
        ({"tested": "0"}, "greater than 0"),
        ({"pos_enc": "ropf-random"}, "--pos-enc: .*did you mean rope"),
        ({"once": "m4[clpi=3]"}, "--once: there is no option clpi; did you mean clip"),
        ({"pos_enc": ""}, "--pos-enc is empty"),
        ({"train__max-positions": "3"}, "the examples determine the lengths"),
        ({"decoder__criterion": "x"}, "cross_entropy"),
        ({"random_range": "40"}, "no encoding ends in -random"),
        ({"longest__srot": "5"}, "did you mean longest.sort"),
        ({"longest__sort": "0"}, "--longest.sort 0: the value must be at least 1"),
        ({"rows__beyond": "0"}, "--rows.beyond 0: the value must be at least 1"),
        ({"longest__scan-length": "5", "tasks": "scan-length"}, "published split decides"),
        ({"tested": "1/2,1"}, "Give at least one multiple up to 1"),
        ({"tested": "2"}, "Give at least one multiple up to 1"),
        ({"tested": "1,3", "tasks": "scan-length"}, "--tested has no effect"),
    ],
)
def test_what_contradicts_itself_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(Refused, match=message):
        stages(**options)


# --- a run


def call(module: Any, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a stage's module in this process."""
    words = [str(ROOT / word) if word.startswith("..") else word for word in stage.command[3:]]
    monkeypatch.setattr(sys, "argv", ["x", *words])
    module.main()


def test_a_run_from_examples_to_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"tasks": "copy,reverse-tags", "pos_enc": "rope", "device": "cpu", "train__max-update": "8"}
    options |= {
        "longest__copy": "3",
        "longest__reverse-tags": "3",
        "rows__train": "200",
        "rows__within": "5",
        "seeds": "1,2",
    }
    chosen, planned = settings(**options), stages("smoke", tmp_path, **options)
    for stage in planned.values():
        if stage.kind == "train":
            flags = [str(ROOT / word) if word.startswith("..") else word for word in stage.command[1:]]
            support.trained([*flags, "--log-file", str(tmp_path / "log")])
        else:
            modules = {"prepare": generate, "evaluate": evaluate, "compare": compare}
            call(modules[stage.kind], stage, monkeypatch)
    rows = LENGTH_TASKS.results(chosen, tmp_path)
    assert [(row["task"], row["encoding"], row["seeds"]) for row in rows] == [
        (name, "rope", 2) for name in chosen.tasks
    ]
    for row in rows:
        runs = [
            read_json(tmp_path / "scores" / f"{row['task']}.{row['encoding']}{end}.json") for end in ("", ".seed=2")
        ]
        assert row["within"] == pytest.approx(sum(run["within"] for run in runs) / 2, abs=0.01)
        assert row["beyond of seeds"] == [round(run["beyond"], 4) for run in runs]
        assert row["solved"] == sum(run["beyond"] >= 90 for run in runs)
        sizes = {
            split: {length: facts["rows"] for length, facts in lengths.items()}
            for split, lengths in row["lengths"].items()
        }
        assert sizes == {"within": {"3": 5}, "beyond": {"6": 50}}
    assert "copy: the model is a decoder; it is trained on examples of up to 3 letters" in remarks(chosen, tmp_path)[1]
    for figure in ("lengths.png", "tasks.png"):
        assert (tmp_path / figure).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("tested", "label"), [((3, 4), "dashed: longest in training"), ((1, 4), "only the test set beyond")]
)
def test_a_curve_joins_test_sets_whose_lengths_follow_each_other(tested: tuple[int, int], label: str) -> None:
    facts = {"exact": 50.0, "exact of seeds": [40.0, 60.0]}
    sets = {"within": {"1": facts, "2": facts}, "beyond": {str(length): facts for length in tested}}
    row = {"encoding": "rope", "unit": "actions", "lengths": sets}
    axes = Figure().add_subplot()
    drawing._line(axes, row)
    drawing._label_lengths(axes, row)
    assert axes.get_xlabel() == f"length in actions ({label})"
    assert [*axes.lines[0].get_xdata()] == ([1, 2, 3, 4] if tested == (3, 4) else [1, 4])


def test_each_encoding_is_compared_with_both_baselines_on_its_task() -> None:
    scores = {"none": [1.0, 2.0, 3.0], "rope": [11.0, 12.0, 13.0], "shaw": [50.0, 51.0, 52.5], "once": [9.0]}
    rows = [
        {"task": name, "encoding": label, "beyond of seeds": values}
        for name in ("copy", "sort")
        for label, values in scores.items()
        if (name, label) != ("sort", "rope")
    ]
    compare.compare(rows)
    column = {(row["task"], row["encoding"]): (row["p none"], row["p rope"]) for row in rows}
    assert column["copy", "none"][0] is None
    assert column["copy", "rope"] == (column["copy", "none"][1], None)
    assert column["copy", "shaw"][0] < 0.01 > column["copy", "shaw"][1]
    assert column["copy", "once"] == (None, None)
    assert column["sort", "shaw"][1] is None
    assert "p" not in rows[0]


def test_names_of_models() -> None:
    model = Model(parse("shaw[clip=4]"), random=True)
    assert (model.label, model.slug) == ("shaw[clip=4]-random", "shaw.clip=4-random")
    assert set(SPLITS) == set(examples("copy"))
