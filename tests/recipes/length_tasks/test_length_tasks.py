"""Test the length tasks: each task against an independent solution, the splits, what is refused, and the scores."""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from integration import support
from support_recipes import called

from fairseq_posenc.encodings import names, spec_of
from recipes.length_tasks import check, drawing, evaluate, generate
from recipes.length_tasks.tasks import pcfg, scan
from recipes.length_tasks.tasks.registry import TASKS
from recipes.length_tasks.tasks.task import END, SPLITS, UNCOUNTED, Example, Sizes
from recipes.lib import checkpoints
from recipes.lib.encodings import facts
from recipes.lib.runs import Model

SIZES = Sizes(8, (6, 8, 12), {"train": 300, "valid": 20, "within": 20, "beyond": 20})
RECIPE = Path(check.__file__).parent
CASES = tomllib.loads(Path(__file__).with_name("cases.toml").read_text("utf-8"))


def examples(name: str) -> dict[str, list[Example]]:
    return TASKS[name].split(random.Random(5), SIZES)


# --- every task against an independent solution, which reads the tokens only


def counted(example: Example) -> str:
    """Return the counted tokens of an output; those of a decoder end with </s> if it must say where it stops."""
    return " ".join(token for token in example.output if token != UNCOUNTED)


def prompt(tokens: list[str]) -> list[str]:
    return tokens[: tokens.index("=")]


def added(first: list[str], second: list[str]) -> str:
    """Add two numbers, and return the sum with one digit more."""
    return str(int("".join(first)) + int("".join(second))).zfill(len(first) + 1)


def sides(tokens: list[str]) -> tuple[list[str], list[str]]:
    plus = tokens.index("+")
    return prompt(tokens)[:plus], prompt(tokens)[plus + 1 :]


def added_with_hints(tokens: list[str]) -> str:
    first, second = sides(tokens)
    assert first[::2] == second[::2]
    start = int(first[0][1:])
    assert first[::2] == [f"h{start + place}" for place in range(len(first) // 2)]
    total = added(first[::-2], second[::-2])[::-1]
    return " ".join(f"h{start + place} {digit}" for place, digit in enumerate(total)) + f" {END}"


def flipped(tokens: list[str]) -> str:
    written, read = "", []
    for kind, bit in zip(tokens[::2], [*tokens[1::2], ""], strict=True):
        written = bit if kind == "w" else written
        read += [written] if kind == "r" else []
    return " ".join(read)


def recalled(tokens: list[str]) -> str:
    middle = tokens.index("=")
    value = dict(zip(tokens[:middle:2], tokens[1:middle:2], strict=True))
    return " ".join(value[key] for key in tokens[middle + 1 :: 2])


def unlocked(tokens: list[str]) -> str:
    return " ".join([*tokens[tokens.index("key") + 2 :][:5], END])


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
    turn = f"{tokens[-1][0].upper()}TURN"
    how = tokens[1] if len(tokens) == 3 else str(len(tokens))
    return " ".join({"1": verb, "2": [turn, *verb], "opposite": [turn, turn, *verb], "around": [turn, *verb] * 4}[how])


def evaluated(tokens: list[str]) -> str:
    """Evaluate an expression of PCFG SET from its end, with a stack of strings of one letter for each token."""
    stack: list[str] = []
    text = ""
    for token in reversed(tokens):
        if token in pcfg.LETTERS:
            text = token + text
            continue
        stack += [text] if text else []
        text = ""
        if token in pcfg.UNARY:
            x = stack.pop()
            changed = {"copy": x, "reverse": x[::-1], "shift": x[1:] + x[0], "repeat": x * 2, "echo": x + x[-1]}
            stack.append({**changed, "swap_first_last": (x[-1] + x[1:-1] + x[0])[: len(x)]}[token])
        elif token != ",":
            x, y = stack.pop(), stack.pop()
            stack.append({"append": x + y, "prepend": y + x, "remove_first": y, "remove_second": x}[token])
    return " ".join(text or stack.pop())


SOLUTIONS: dict[str, Callable[[list[str]], str]] = {
    "copy": lambda tokens: " ".join([*prompt(tokens), END]),
    "reverse": lambda tokens: " ".join([*reversed(prompt(tokens)), END]),
    "sort": lambda tokens: " ".join([*sorted(prompt(tokens), key=int), END]),
    "parity": lambda tokens: str(sum(map(int, prompt(tokens))) % 2),
    "flip-flop": flipped,
    "addition": lambda tokens: " ".join([*added(*sides(tokens)), END]),
    "addition-reversed": lambda tokens: " ".join([*added(*sides(tokens))[::-1], END]),
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
    assert name in SOLUTIONS, f"{name} has no independent solution: add a function of its input to SOLUTIONS"
    drawn = [example for split in examples(name).values() for example in split[:300]]
    assert [counted(example) for example in drawn] == [SOLUTIONS[name](example.input) for example in drawn]
    for example in drawn if TASKS[name].kind != "encoder-decoder" else []:
        assert len(example.input) == len(example.output)
        if TASKS[name].kind == "decoder":  # each counted token, except the last one, is also the next input
            pairs = zip(example.output[:-1], example.input[1:], strict=True)
            assert all(target in (UNCOUNTED, following) for target, following in pairs)


@pytest.mark.parametrize("name", [name for name in TASKS if TASKS[name].longest])
def test_test_sets_have_their_lengths_and_no_example_of_training(name: str) -> None:
    splits = examples(name)
    assert splits == examples(name) != TASKS[name].split(random.Random(6), SIZES)
    assert {split: len(rows) for split, rows in splits.items()} == {**SIZES.rows, "within": 2 * 20}
    assert [{example.length for example in splits[split]} for split in ("within", "beyond")] == [{6, 8}, {12}]
    assert max(example.length for example in splits["train"] + splits["valid"]) == 8
    tested = [tuple(example.input) for example in splits["within"] + splits["beyond"]]
    trained = {tuple(example.input) for example in splits["train"] + splits["valid"]}
    assert len({*tested} - trained) == len(tested)


@pytest.mark.parametrize("words", CASES["lengths"])
def test_lengths_that_a_task_cannot_have_are_refused(words: str, tmp_path: Path) -> None:
    options = f"{words} --longest 10 --within 9 --beyond 9 --seed 1 --output {tmp_path / 'data'}"
    with pytest.raises(SystemExit, match=re.escape(CASES["lengths"][words])):
        called(generate, *options.split())
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(("name", "train", "test"), [("scan-length", 16_990, 3_920), ("scan-template", 15_225, 4_476)])
def test_the_published_sizes_of_scan(name: str, train: int, test: int) -> None:
    """The sizes are those of the files that Lake and Baroni published."""
    splits = examples(name)
    assert len([*scan.commands()]) == 20_910
    assert sum(len(splits[split]) for split in ("train", "valid", "within")) == train
    assert len(splits["beyond"]) == test
    lengths = {example.length for example in splits["beyond"]}
    assert name == "scan-template" or lengths == {24, 25, 26, 27, 28, 30, 32, 33, 36, 40, 48}


# --- settings

SETTINGS = "--tasks copy --pos-enc rope --tested 1/2,2 --rows.train 9 --rows.valid 9 --rows.within 9 --rows.beyond 9"


@pytest.mark.parametrize("words", CASES["models"])
def test_each_task_and_encoding_has_a_kind_of_model_encodings_and_sizes(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    called(check, *f"{SETTINGS} {words}".split())
    assert capsys.readouterr().out == CASES["models"][words]


@pytest.mark.parametrize("words", CASES["settings"])
def test_what_contradicts_itself_is_refused(words: str) -> None:
    with pytest.raises(SystemExit, match=CASES["settings"][words]):
        called(check, *f"{SETTINGS} {words}".split())


def test_the_help_names_every_task() -> None:
    assert f"[list {'|'.join(TASKS)}]" in (RECIPE / "run.sh").read_text()


def test_the_preset_all_has_every_encoding_that_works_in_decoders() -> None:
    text = "\n".join((RECIPE / "conf" / f"{preset}.sh").read_text() for preset in ("small", "all"))
    labels = {label for line in re.findall("^(?:pos_enc|once)=(.*)", text, re.MULTILINE) for label in line.split(",")}
    able = {spec_of(name) for name in names() if facts(name)["causal"] and name != "sentence-restart"}
    assert not able - labels, f"add to `once` in recipes/length_tasks/conf/all.sh: {sorted(able - labels)}"


# --- scores


@pytest.mark.parametrize(("right", "solved"), [(8, 0.0), (9, 100.0), (10, 100.0)])
def test_a_training_run_has_solved_a_task_at_90_percent(right: int, solved: float) -> None:
    beyond = {11: [True], 12: [True] * (right - 1) + [False] * (10 - right)}
    facts = evaluate.percentages({"within": {2: [True], 3: [True, False, False]}, "beyond": beyond})
    assert [facts[key] for key in ("solved", "beyond", "beyond.11", "within")] == [solved, 10.0 * right, 100.0, 50.0]


@pytest.mark.parametrize(("shortest", "joined"), [(3, True), (1, False)])
def test_a_curve_joins_test_sets_whose_lengths_follow_each_other(shortest: int, joined: bool) -> None:
    scores = {"within.2": 9.0, "within.1": 8.0, f"beyond.{shortest}": 7.0, "beyond.12": 6.0}
    row = drawing.Row("copy", "rope", [Model("copy.rope.s1", "rope", 1, "copy", "", scores)])
    assert (row.is_joined, row.lengths("beyond")) == (joined, {shortest: [7.0], 12: [6.0]})


def test_a_checkpoint_is_scored_on_the_examples_of_its_task(tmp_path: Path) -> None:
    data, checkpoint = tmp_path / "data", tmp_path / "checkpoint_last.pt"
    sizes = "--longest 2 --tested 2 3 --train 200 --valid 9 --within 7 --beyond 30"
    called(generate, *f"--task reverse --seed 1 {sizes} --output {data}".split())
    flags = "--task posenc_answers --arch posenc_transformer_lm_tiny --max-update 8 --batch-size 32 --pos-enc alibi"
    flags += f" --cpu --criterion cross_entropy --optimizer adam --lr 0.01 --log-file {tmp_path / 'log'}"
    support.trained([str(data), "--user-dir", str(support.PLUGIN), *flags.split(), "--save-dir", str(tmp_path)])
    loaded = checkpoints.load(checkpoint, {"data": str(data)}, cpu=True)
    rows = {split: evaluate.matches(loaded, split) for split in SPLITS[2:]}
    assert (len(rows["within"][2]), len(rows["beyond"][3])) == (7, 30)
    facts = evaluate.scores(checkpoint, data, cpu=True)
    assert facts == {**evaluate.percentages(rows), "updates": 8, "parameters": facts["parameters"]}
