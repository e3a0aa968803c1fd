"""Say which command of a recipe computes each number of the papers' tables, or why no recipe computes it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ...papers.reading import Figure


class Target(NamedTuple):
    """Describe which recipe reproduces a number of a paper, and which columns hold our score and the paper's number.

    Args:
        recipe: Folder in recipes/.
        task: Task of the row, as the main table shows it; empty if any task will do.
        score: Column of our score.
        paper: Column in which the recipe writes the paper's number.
        arguments: Arguments of the recipe.
    """

    recipe: str
    task: str
    score: str
    paper: str
    arguments: list[str]

    @property
    def command(self) -> str:
        """Return the command that computes our score."""
        return shlex.join([f"recipes/{self.recipe}/run.sh", *self.arguments])


#: Stands for a pretrained checkpoint of the user in a command; it decides the encoding of a fine-tuned model.
MODEL = "MODEL"
#: Stands for a folder of the user with one file per book in a command.
BOOKS = "BOOKS"

#: Tables whose numbers no training gives, and what gives ours.
NO_SCORES: Mapping[tuple[str, str], str] = {
    ("DIET", "Table 1"): "Times on TPUs. The command `bench` measures the times of our encodings.",
    ("DIET", "Table 7"): "Hyperparameters. The presets of the recipes have these values.",
    ("LFHC", "Table 4"): "Hyperparameters. The presets of the recipes have these values.",
    ("M1-M4", "Section 3.6"): "Numbers of parameters and sequences on a GPU. The command `params` counts parameters.",
    ("M1-M4", "Section 4.3"): "Lengths of texts. recipes/finetune_squad reports those of its questions.",
    ("M1-M4", "Table 1"): "Numbers of parameters. The command `params` counts those of our encodings.",
    ("M4M", "Table 1"): "Numbers of parameters. The command `params` counts those of our encodings.",
}
PARAMETERS = "Numbers of parameters of whole models. The command `params` counts those of our encodings."
TWICE = "The paper prints another number for the same scores in a table of results, which the recipe shows."
TEST_SETS = "Scores of GLUE's test sets, whose labels only GLUE's server has. The recipe writes files for the server."


def reason_of(figure: Figure) -> str:
    """Return why no recipe computes a number of a paper; empty if one does, or if nobody has written down why."""
    if reason := NO_SCORES.get((figure.paper, figure.table)):
        return reason
    if (figure.paper, figure.table) == ("DIET", "Table 6"):
        return TWICE if figure.column == "XTREME" else PARAMETERS
    if (figure.paper, figure.table) == ("M4M", "Section 5.6"):
        return TWICE
    return TEST_SETS if figure.of_test_set else ""


def target_of(figure: Figure) -> Target | None:
    """Return how a recipe reproduces a number of a paper; None if no recipe reproduces it."""
    if not figure.encoding or figure.value is None or reason_of(figure):
        return None
    place = PLACES.get((figure.paper, figure.table))
    return place(figure) if place else _fine_tuned(figure)


# --- models that are trained from scratch


def _translation(figure: Figure) -> Target:
    preset = {"Vaswani et al. (2017)": "vaswani", "Shaw et al. (2018)": "shaw", "DIET-REL": "diet-rel"}[figure.row]
    arguments = ["--preset", f"table4-{preset}", "--direction", figure.column, "--pos-enc", figure.encoding]
    return Target("translation_wmt18", figure.column, "BLEU", "paper", arguments)


def _classified(figure: Figure) -> Target:
    arguments = ["--preset", "paper", "--tasks", figure.column, "--pos-enc", figure.encoding]
    return Target("text_classification", figure.column, "score", "paper", arguments)


def _asked(figure: Figure) -> Target:
    preset = {"SQuAD": "paper", "CMRC": "paper-cmrc"}[figure.column]
    arguments = ["--preset", preset, "--encoder", MODEL, "--pos-enc", figure.encoding]
    return Target("question_generation", figure.column, "ROUGE-L", "paper", arguments)


def _modelled(figure: Figure) -> Target:
    # the preset evaluates with the memories 150 and 640, and takes the best of them
    arguments = ["--preset", "wt103", "--pos-enc", figure.encoding]
    return Target("lm_wikitext103", f"wikitext103, {figure.column}", "perplexity", "paper", arguments)


def _pretrained(figure: Figure) -> Target:
    arguments = ["--preset", "m4m-unsuccessful", "--books", BOOKS, "--pos-enc", figure.encoding]
    return Target("pretrain_mlm", "", "training loss", "paper's training loss", arguments)


#: Functions that return the targets of the tables of models that are trained from scratch.
PLACES: Mapping[tuple[str, str], Callable[[Figure], Target]] = {
    ("DIET", "Table 4"): _translation,
    ("LFHC", "Table 1"): _classified,
    ("LFHC", "Table 5"): _classified,
    ("LFHC", "Table 2"): _asked,
    ("LFHC", "Table 6"): _asked,
    ("LFHC", "Table 3"): _modelled,
    ("LFHC", "Table 7"): _modelled,
    ("M4M", "Section 5.2"): _pretrained,
}

# --- models that are fine-tuned

GLUE = ("MNLI-m", "MNLI-mm", "QQP", "QNLI", "SST-2", "CoLA", "STS-B", "MRPC", "RTE")
XTREME = ("XNLI", "XQuAD", "MLQA", "TyDiQA")
AVERAGE = "average"  # over the tasks of the preset
#: Presets of recipes/finetune_glue by paper.
SENTENCES = {"M1-M4": "paper", "M4M": "paper-m4m", "DIET": "paper-diet"}
#: Presets of recipes/finetune_squad by paper and model.
SQUAD = {
    ("M1-M4", "BERT-base"): "m1-m4",
    ("M1-M4", "BERT-base (Devlin et al., 2018)"): "m1-m4",
    ("M1-M4", "BERT-large"): "m1-m4-large",
    ("M1-M4", "BERT-large (Devlin et al., 2018)"): "m1-m4-large",
    ("M4M", "RoBERTa-base"): "m4m-small",
    ("M4M", "RoBERTa-base, learning rate 2.5e-5"): "m4m-small-slower",
    ("M4M", "roberta-base"): "m4m",
    ("M4M", "from roberta-base"): "m4m",
    ("M4M", "from roberta-base, on C4"): "m4m",
    ("M4M", "roberta-large"): "m4m-large",
    ("M4M", "from roberta-large"): "m4m-large",
}


def _fine_tuned(figure: Figure) -> Target | None:
    """Return the recipe for the model and the column; all of these recipes have a row for each column."""
    model, column = figure.conditions.get("model", ""), figure.column
    name = column.partition(" ")[0]
    if model == "BERT-base, 100 languages" and name in (*XTREME, AVERAGE):
        recipe, arguments = "finetune_xtreme", ["--preset", "paper", *_tasks(name)]
    elif name in (*GLUE, AVERAGE) and figure.paper in SENTENCES:
        recipe, arguments = "finetune_glue", ["--preset", SENTENCES[figure.paper], *_tasks(name.partition("-m")[0])]
    elif name.startswith("SQuAD") and (preset := SQUAD.get((figure.paper, model))):
        length = figure.conditions.get("length", "512")
        preset += "" if length == "512" else f"-{length}"
        recipe, arguments = "finetune_squad", ["--preset", preset, "--version", name.removeprefix("SQuAD")]
    else:
        return None
    segments = figure.conditions.get("segments", "none")
    arguments += ["--pos-enc", figure.encoding, "--pretrained", MODEL, "--segments", segments]
    return Target(recipe, column, "score", "paper", arguments)


def _tasks(name: str) -> list[str]:
    return [] if name == AVERAGE else ["--tasks", name]
