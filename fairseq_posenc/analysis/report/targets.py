"""Say which command of a recipe computes each number of the papers' tables, or why no recipe computes it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
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

HYPERPARAMETERS = "Hyperparameters. The presets of the recipes have these values."
PARAMETERS = "Numbers of parameters. The command `params` counts those of our encodings."
TWICE = "The paper prints another number for the same scores in a table of results, which the recipe shows."
TEST_SETS = "Scores of GLUE's test sets, whose labels only GLUE's server has. The recipe writes files for the server."
#: Tables, or columns of tables, whose numbers no training gives, and what gives ours.
NO_SCORES: Mapping[tuple[str, ...], str] = {
    ("DIET", "Table 1"): "Times on TPUs. `make bench` measures the times of our encodings.",
    ("DIET", "Table 6"): "Numbers of parameters of whole models. The command `params` counts those of our encodings.",
    ("DIET", "Table 6", "XTREME"): TWICE,
    ("DIET", "Table 7"): HYPERPARAMETERS,
    ("LFHC", "Table 4"): HYPERPARAMETERS,
    ("M1-M4", "Section 3.6"): "Numbers of parameters and sequences on a GPU. The command `params` counts parameters.",
    ("M1-M4", "Section 4.3"): "Lengths of texts. recipes/finetune_squad reports those of its questions.",
    ("M1-M4", "Table 1"): PARAMETERS,
    ("M4M", "Section 5.6"): TWICE,
    ("M4M", "Table 1"): PARAMETERS,
}


def reason_of(figure: Figure) -> str:
    """Return why no recipe computes a number of a paper; empty if one does, or if nobody has written down why."""
    places = (figure.paper, figure.table, figure.column), (figure.paper, figure.table)
    reasons = (NO_SCORES[place] for place in places if place in NO_SCORES)
    return next(reasons, TEST_SETS if figure.of_test_set else "")


def target_of(figure: Figure) -> Target | None:
    """Return how a recipe reproduces a number of a paper; None if no recipe reproduces it."""
    if not figure.encoding or figure.value is None or reason_of(figure):
        return None
    if target := PLACES.get((figure.paper, figure.table)):
        own = {"column": figure.column, "model": MODELS.get(figure.row), "data": DATA.get(figure.column)}
        arguments = [text.format(**own) for text in target.arguments]
        return target._replace(task=target.task.format(**own), arguments=[*arguments, "--pos-enc", figure.encoding])
    return _fine_tuned(figure)


# --- models that are trained from scratch

#: What stands for {model} and for {data} in the arguments below: parts of presets, by rows and by columns.
MODELS = {"Vaswani et al. (2017)": "vaswani", "Shaw et al. (2018)": "shaw", "DIET-REL": "diet-rel"}
DATA = {"SQuAD": "paper", "CMRC": "paper-cmrc"}
_TRANSLATED = Target(
    "translation_wmt18", "{column}", "BLEU", "paper", ["--preset", "table4-{model}", "--direction", "{column}"]
)
_CLASSIFIED = Target("text_classification", "{column}", "score", "paper", ["--preset", "paper", "--tasks", "{column}"])
_ASKED = Target("question_generation", "{column}", "ROUGE-L", "paper", ["--preset", "{data}", "--encoder", MODEL])
# The preset evaluates with the memories 150 and 640, and takes the best of them.
_MODELLED = Target("lm_wikitext103", "wikitext103, {column}", "perplexity", "paper", ["--preset", "wt103"])
_PRETRAINED = Target(
    "pretrain_mlm", "", "training loss", "paper's training loss", ["--preset", "m4m-unsuccessful", "--books", BOOKS]
)
#: Targets of the tables of models that are trained from scratch; the encoding is added to their arguments.
PLACES: Mapping[tuple[str, str], Target] = {
    ("DIET", "Table 4"): _TRANSLATED,
    ("LFHC", "Table 1"): _CLASSIFIED,
    ("LFHC", "Table 5"): _CLASSIFIED,
    ("LFHC", "Table 2"): _ASKED,
    ("LFHC", "Table 6"): _ASKED,
    ("LFHC", "Table 3"): _MODELLED,
    ("LFHC", "Table 7"): _MODELLED,
    ("M4M", "Section 5.2"): _PRETRAINED,
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
