"""Define the published files, columns and labels of GLUE (Wang et al. 2018) and XNLI (Conneau et al. 2018)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: candidate files of each split; the first file that exists is read
USUAL = {"train": ("train.tsv",), "valid": ("dev.tsv",), "test": ("test.tsv",)}
BINARY = ("0", "1")
ENTAILMENT = ("entailment", "not_entailment")
#: MRPC's training file, which contains the development set, and the list of the development set's ids
MRPC_TRAIN, MRPC_DEV_IDS = "msr_paraphrase_train.txt", "mrpc_dev_ids.tsv"
#: split of GLUE's diagnostic set, for models that are trained on MNLI
AX = "test-ax"


@dataclass(frozen=True)
class Format:
    """Describe the form in which the files of a task are published.

    Args:
        sentences: Columns with the sentences (one or two).
        label: Column of the label.
        labels: Labels of the classes; empty for regression.
        bounds: Smallest and largest label of regression.
        index: Possible names of the column that numbers the rows.
        header: Columns of files without a header line.
        files: Candidate files by split.
        folders: Folders to which the archives of the task unpack, besides TASK/.
        aliases: Names of columns and labels in other versions of the files, mapped to the names used here.
        translated: Whether there is a split for each language, with translations of the same rows. The test
            sets of a translated task have public labels, so the recipes score them.
    """

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


#: languages of XNLI, English first
LANGUAGES = tuple("en ar bg de el es fr hi ru sw th tr ur vi zh".split())


def language(split: str) -> str:
    """Return the language of a split: `de` for `valid-de`, and English for names without a language."""
    return split.partition("-")[2] or LANGUAGES[0]


def _xnli() -> dict[str, tuple[str, ...]]:
    """Return XNLI's files by split: one file per language (XTREME), or one for all languages (the original)."""
    files: dict[str, tuple[str, ...]] = {
        "train": ("train-en.tsv", "multinli.train.en.tsv", "MNLI/train.tsv"),
        "valid": ("dev-en.tsv", "xnli.dev.tsv"),
    }
    files |= {f"valid-{code}": (f"dev-{code}.tsv", "xnli.dev.tsv") for code in LANGUAGES[1:]}
    return files | {f"test-{code}": (f"test-{code}.tsv", "xnli.test.tsv") for code in LANGUAGES}


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
