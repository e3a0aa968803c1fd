"""EM and F1 of answers, as the sets' own scripts compute them: of predictions, and of answers that need no model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from fairseq_posenc.data import spans
from fairseq_posenc.data.question_pieces import Words
from fairseq_posenc.metrics import null_threshold, squad
from recipes.lib.stages import read_json

from .files import GOLD, TEXTS, THRESHOLD

CHINESE = ("\u4e00", "\u9fff")


def golds(folder: Path, split: str) -> dict[str, list[str]]:
    """Return the answers to every question of the file, also to those that could not be used."""
    return {one.id: one.answers for one in spans.questions(folder, split)}


def rules_of(folder: Path) -> str:
    """Return the rules, one of `squad.RULES`, for the version of SQuAD that was prepared."""
    return f"squad-v{spans.record(folder)['version']}"


def named(scores: dict[str, float]) -> dict[str, float]:
    """Return EM under one name, whatever the script calls it."""
    return {"em": scores.get("exact_match", scores.get("exact", 0.0)), **scores}


def scored(wanted: dict[str, list[str]], predictions: Path, rules: str) -> dict[str, Any]:
    """Return the scores; of version 2.0 also the best threshold.

    Args:
        predictions: a folder with the files of answers.py, or a predictions.json.
    """
    alone = predictions.is_file()
    if rules == squad.V20 and not alone:
        texts, odds, threshold = (read_json(predictions / name) for name in (TEXTS, "null_odds.json", THRESHOLD))
        scores = null_threshold.evaluate(wanted, texts, odds, threshold)
    else:
        scores = squad.evaluate(wanted, read_json(predictions if alone else predictions / "predictions.json"), rules)
    return {**named(scores), "rules": rules}


# --- answers that need no model


def baselines(folder: Path, split: str, rules: str | None = None) -> dict[str, dict[str, Any]]:
    """Return the scores of the span baseline, in SQuAD 2.0 of no answer, and of the right answers, by name.

    Args:
        rules: one of `squad.RULES`; unset: those of the version that was prepared.
    Raises:
        SystemExit: the right answers have less than 100.
    """
    rules, wanted = rules or rules_of(folder), golds(folder, split)
    asked, texts = spans.questions(folder, split), spans.contexts(folder, split)
    cut = Words(units([one.question for one in asked]), cased=False)
    learned = "train" if "train" in spans.splits(folder) else split
    length = mean_length([one.answers for one in spans.questions(folder, learned)], cut)
    answers = {one.id: overlap(texts[one.context].text, one.question, length, cut) for one in asked}
    by_name = {f"{length} words that are most in the question": answers}
    by_name |= {"no answer": dict.fromkeys(wanted, "")} if rules == squad.V20 else {}
    scores = {name: named(squad.evaluate(wanted, one, rules)) for name, one in by_name.items()}
    return {**scores, GOLD: _score_right(wanted, rules)}


def _score_right(wanted: dict[str, list[str]], rules: str) -> dict[str, float]:
    """Return the scores of the right answers, which have to be 100 but for answers without words."""
    scores = named(squad.evaluate(wanted, right(wanted, rules), rules))
    if not (math.isclose(scores["em"], 100) and math.isclose(scores["f1"], 100)):
        how = squad.rules(rules)
        empty = [name for name, some in wanted.items() if some and not any(map(how.words, some))]
        told = f"; answers without words, whose F1 is 0 by {rules}: {', '.join(empty[:5])}" if empty else ""
        print(f"right answers have EM {scores['em']:.4f} and F1 {scores['f1']:.4f}, not 100{told}", flush=True)
        if len(empty) != round((100 - scores["f1"]) * len(wanted) / 100) or not math.isclose(scores["em"], 100):
            raise SystemExit("error: right answers have to have 100: this is a fault of the scores")
    return scores


def right(answers: dict[str, list[str]], rules: str) -> dict[str, str]:
    """Return one answer to each question, with words if any has some."""
    how = squad.rules(rules)
    return {name: next(filter(how.words, some), some[0] if some else "") for name, some in answers.items()}


def units(texts: list[str]) -> str:
    """Return chars if a quarter of the letters is Chinese, else words (`question_pieces.JOINED`)."""
    letters = [letter for text in texts for letter in text if letter.isalpha()]
    chinese = sum(CHINESE[0] <= letter <= CHINESE[1] for letter in letters)
    return "chars" if 4 * chinese > len(letters) else "words"


def mean_length(answers: list[list[str]], cut: Words) -> int:
    """Return the mean length of first answers, in words."""
    lengths = [len(cut.cut(some[0])) for some in answers if some]
    return max(1, round(sum(lengths) / max(len(lengths), 1)))


def overlap(context: str, question: str, length: int, cut: Words) -> str:
    """Return the first span of `length` words that has most words of the question."""
    asked, words = {word.name for word in cut.cut(question)}, cut.cut(context)
    if len(words) <= length:
        return context.strip()
    shared = np.cumsum([0, *(word.name in asked for word in words)])
    first = int((shared[length:] - shared[:-length]).argmax())
    return context[words[first].start : words[first + length - 1].end]
