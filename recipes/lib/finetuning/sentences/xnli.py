"""Choose one split of XNLI for each language, and compute the mean scores over the languages."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from statistics import fmean

XNLI = "XNLI"
#: English, the language of the training set, comes first.
LANGUAGES = tuple("en ar bg de el es fr hi ru sw th tr ur vi zh".split())
ENGLISH = LANGUAGES[0]
MEAN, OTHERS = "mean", "mean but en"
Scores = Mapping[str, Mapping[str, float]]


def language(split: str) -> str:
    """Return the language that the name of a split contains, or English if it contains none."""
    return split.partition("-")[2] or ENGLISH


def scored(labelled: Collection[str]) -> list[str]:
    """Return the labelled test sets, one for each language, or else the labelled development sets.

    The development sets are returned if no test set has labels, or if only English has a labelled test set while other
    languages have labelled development sets.

    Args:
        labelled: Names of the splits that have labels.
    """
    tests = [split for split in labelled if split.startswith("test-")]
    valid = [split for split in labelled if split.startswith("valid")]
    return tests if tests and (_others(tests) or not _others(valid)) else valid


def _others(splits: Collection[str]) -> list[str]:
    return [split for split in splits if language(split) != ENGLISH]


def with_means(scores: Scores) -> dict[str, Mapping[str, float]]:
    """Add two means to the scores: over all languages, and over all languages except English."""
    chosen = scored(scores)
    others = _others(chosen)
    with_mean = {**scores, MEAN: _mean(scores, chosen)}
    return with_mean | ({OTHERS: _mean(scores, others)} if 0 < len(others) < len(chosen) else {})


def _mean(scores: Scores, splits: Collection[str]) -> dict[str, float]:
    names = next(iter(scores.values()))
    return {name: fmean(scores[split][name] for split in splits) for name in names}


def differences(labelled: Collection[str]) -> list[str]:
    """Say how the mean of a run differs from XTREME's mean, which covers the test sets of all languages."""
    chosen = scored(labelled)
    languages = [] if len(chosen) == len(LANGUAGES) else [f"{len(chosen)} of {len(LANGUAGES)} languages"]
    return languages + ([] if chosen[0].startswith("test-") else ["scores of development sets"])


def summary(splits: Mapping[str, Mapping[str, object]]) -> str:
    """Say which sets of which languages are scored, and which languages have files without labels.

    Args:
        splits: Entry `splits` of glue.json, keyed by the name of the split.
    """
    labelled = [split for split, facts in splits.items() if facts["labelled"] and split != "train"]
    chosen = scored(labelled)
    kind = "test" if chosen[0].startswith("test-") else "development"
    names = [language(split) for split in chosen]
    missing = sorted({language(split) for split in splits if split != "train"} - {*names})
    text = f"{XNLI} is scored on the {kind} sets of {', '.join(names)}."
    text += "" if kind == "test" else " The English set also chooses checkpoints."
    unscored = f" These languages have no score, because their sets have no labels: {', '.join(missing)}."
    return text + (unscored if missing else "")
