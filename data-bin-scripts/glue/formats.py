"""The tasks of GLUE (Wang et al. 2018), and XNLI (Conneau et al. 2018), as published: files, columns, labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: of each split, the files that may hold it; the first that is there is taken
USUAL = {"train": ("train.tsv",), "valid": ("dev.tsv",), "test": ("test.tsv",)}
BINARY = ("0", "1")
ENTAILMENT = ("entailment", "not_entailment")
#: MRPC's training file, of which this list names the development set
MRPC_TRAIN, MRPC_DEV_IDS = "msr_paraphrase_train.txt", "mrpc_dev_ids.tsv"
#: the diagnostic set, for models of MNLI
AX = "test-ax"


@dataclass(frozen=True)
class Format:
    """sentences: one or two columns. label: its column. labels: by class; none of regression. bounds: of regression.
    index: columns that number the rows, where a file has one. header: of files that have none. files: by split.
    folders: that archives unpack to, beside one of the task's name. aliases: columns and labels that other files of the
    task have, by what they are here. translated: its splits are languages, whose rows are translations of each other,
    and are scored here, not submitted to GLUE."""

    sentences: tuple[str, ...]
    label: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, float] = (0.0, 0.0)
    index: tuple[str, ...] = ("index",)
    header: tuple[str, ...] = ()
    files: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: USUAL)
    folders: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    translated: bool = False


#: of XNLI, English first
LANGUAGES = tuple("en ar bg de el es fr hi ru sw th tr ur vi zh".split())


def language(split: str) -> str:
    """Return the language of a split: `de` for `valid-de`, English for names without one."""
    return split.partition("-")[2] or LANGUAGES[0]


def _xnli() -> dict[str, tuple[str, ...]]:
    """Return XNLI's files by split: XTREME has a file for each language, the publication one for all languages."""
    found: dict[str, tuple[str, ...]] = {
        "train": ("train-en.tsv", "multinli.train.en.tsv", "MNLI/train.tsv"),
        "valid": ("dev-en.tsv", "xnli.dev.tsv"),
    }
    found |= {f"valid-{one}": (f"dev-{one}.tsv", "xnli.dev.tsv") for one in LANGUAGES[1:]}
    return found | {f"test-{one}": (f"test-{one}.tsv", "xnli.test.tsv") for one in LANGUAGES}


TASKS: dict[str, Format] = {
    "CoLA": Format(("sentence",), "label", BINARY, header=("source", "label", "mark", "sentence")),
    "SST-2": Format(("sentence",), "label", BINARY),
    "MRPC": Format(
        ("#1 String", "#2 String"),
        "Quality",
        BINARY,
        files={
            "train": ("train.tsv", MRPC_TRAIN),
            "valid": ("dev.tsv", MRPC_TRAIN),
            "test": ("test.tsv", "msr_paraphrase_test.txt"),
        },
    ),
    "STS-B": Format(("sentence1", "sentence2"), "score", bounds=(0.0, 5.0)),
    "QQP": Format(("question1", "question2"), "is_duplicate", BINARY, index=("id",), folders=("QQP-clean",)),
    "MNLI": Format(
        ("sentence1", "sentence2"),
        "gold_label",
        ("contradiction", "entailment", "neutral"),
        files={
            "train": ("train.tsv",),
            "valid": ("dev_matched.tsv",),
            "valid-mismatched": ("dev_mismatched.tsv",),
            "test": ("test_matched.tsv",),
            "test-mismatched": ("test_mismatched.tsv",),
            AX: ("AX.tsv", "diagnostic.tsv"),
        },
    ),
    "QNLI": Format(("question", "sentence"), "label", ENTAILMENT, folders=("QNLIv2",)),
    "RTE": Format(("sentence1", "sentence2"), "label", ENTAILMENT),
    "XNLI": Format(
        ("sentence1", "sentence2"),
        "gold_label",
        ("contradiction", "entailment", "neutral"),
        header=("sentence1", "sentence2", "gold_label"),
        files=_xnli(),
        folders=("xnli", "xnli/XNLI-1.0", "xnli/XNLI-MT-1.0/multinli"),
        aliases={
            "premise": "sentence1",
            "hypo": "sentence2",
            "label": "gold_label",
            "contradictory": "contradiction",
        },
        translated=True,
    ),
}
