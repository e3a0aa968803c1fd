"""Evaluate the fine-tuned models of a run in one process, and choose the best hyperparameters on development data.

Each finished training answers all development and test sets. If several learning rates or numbers of epochs were tried,
the report shows the combination whose median over the seeds is best, and every training that diverged. For GLUE's
server, submission/ gets the test predictions of the seed with the median score.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from statistics import median, median_low

from fairseq_posenc.core.training_log import read_divergence
from fairseq_posenc.core.writing import whole_folder, write_whole
from recipes.lib.runs import models, steps, training_log

from . import question_scores, questions, sentences
from .baselines import splits
from .columns import Scores, data_of, record, slug
from .table import Group, Outcome, Table, Trial
from .tasks import TASKS, metrics


def trials(run: Path, lrs: str, epochs: str) -> list[Trial]:
    """Return all training runs. Their names have the hyperparameters only if several are tried."""
    pairs, done, found = (
        [*product(lrs.split(","), epochs.split(","))],
        {step.name for step in steps(run)},
        list[Trial](),
    )
    for model in models(run):
        for lr, count in pairs:
            name = f"{model.name}.lr{lr}.e{count}" if len(pairs) > 1 else model.name
            failed = "" if f"train:{name}" in done else f"it did not train to its end ({model.failed})"
            found.append(Trial(name, *model[1:4], f"learning rate {lr}, {count} epochs", failed))
    return found


def outcome(trial: Trial, arguments: argparse.Namespace) -> Outcome:
    """Return the scores of a training run. They are kept in trials/, so that an interrupted evaluation goes on."""
    run: Path = arguments.run
    folder = data_of(run, trial.item, trial.encoding)
    keep = arguments.keep if "valid" in record(folder)["splits"] else "last"
    checkpoint = run / "checkpoints" / trial.name / f"checkpoint_{keep}.pt"
    if divergence := read_divergence(training_log(run, trial.name)):
        return Outcome(trial, {}, f"diverged: {divergence}")
    if trial.failed:
        return Outcome(trial, {}, trial.failed)
    options = [arguments.n_best, arguments.longest_answer, arguments.null_threshold]
    key = [checkpoint.stat().st_size, checkpoint.stat().st_mtime_ns, *options]
    kept = run / "trials" / f"{trial.name}.json"
    if not kept.is_file() or json.loads(kept.read_text("utf-8"))["key"] != key:
        scores = (of_sentences if trial.item in TASKS else of_questions)(trial, checkpoint, folder, arguments)
        kept.parent.mkdir(exist_ok=True)
        write_whole(kept, json.dumps({"key": key, "scores": scores}, indent=1))
    return Outcome(trial, json.loads(kept.read_text("utf-8"))["scores"])


def of_sentences(trial: Trial, checkpoint: Path, folder: Path, arguments: argparse.Namespace) -> Scores:
    """Write the predictions of a classifier, and return its scores by split."""
    gpu = questions.of_arguments(arguments).gpu
    model, task = questions.load(checkpoint, folder, gpu=gpu)
    names = metrics(trial.item, arguments.papers)
    return sentences.evaluate(model, task, folder, names, arguments.run / "predictions" / trial.name, gpu=gpu)


def of_questions(trial: Trial, checkpoint: Path, folder: Path, arguments: argparse.Namespace) -> Scores:
    """Write a folder of answers for each split, and return the scores by split."""
    options, scores = questions.of_arguments(arguments), Scores()
    for place, split, name, rules in splits(folder, folder.name.removeprefix(trial.item)):
        model, task = questions.load(checkpoint, place, gpu=options.gpu)
        answers = arguments.run / "predictions" / trial.name / name.replace(" ", ".")
        questions.predict(model, task, place, split, answers, options)
        scores[name] = question_scores.scored(place, split, answers, options.threshold, rules)
    return scores


# --- the best hyperparameters


def groups(outcomes: Iterable[Outcome]) -> dict[tuple[str, str], list[Group]]:
    """Return the training runs of each task and encoding, in groups that differ only in their seeds."""
    found: dict[tuple[str, str], dict[str, Group]] = {}
    for one in outcomes:
        own = found.setdefault((one.trial.item, one.trial.encoding), {})
        own.setdefault(one.trial.hyperparameters, []).append(one)
    return {key: [*own.values()] for key, own in found.items()}


def chosen(group: list[Group], papers: str) -> Group:
    """Return the group with the highest median of the development score, or the first one if no training finished."""

    def score(one: Outcome) -> float:
        task = one.trial.item
        return one.scores["valid"][metrics(task, papers)[0] if task in TASKS else "f1"]

    finished = [own for own in group if not all(one.failed for one in own)]
    if len(finished) < 2:
        return (finished or group)[0]
    return max(finished, key=lambda own: median(score(one) for one in own if not one.failed))


def submission(group: Group, papers: str, run: Path, output: Path) -> None:
    """Copy the test predictions of the finished training run with the median score, as files for GLUE's server."""
    item, first = group[0].trial.item, metrics(group[0].trial.item, papers)[0]
    scores = {one.trial.name: one.scores["valid"][first] for one in group if not one.failed}
    for name in [name for name in scores if scores[name] == median_low(scores.values())][:1]:
        for file in TASKS[item].submissions.values():
            if (source := run / "predictions" / name / file).is_file():
                output.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, output / file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--run", type=Path, required=True, metavar="DIR", help="Folder of the run.")
    option("--learning-rates", required=True, metavar="LR,...", help="Learning rates that were tried.")
    option("--epochs", required=True, metavar="N,...", help="Numbers of epochs that were tried.")
    option("--keep", choices=("last", "best"), default="last", help="Checkpoint to score.")
    option("--papers", default="", metavar="PAPER/MODEL;...", help="Models of papers whose numbers stand beside ours.")
    option("--output", type=Path, required=True, metavar="DIR", help="Folder for the scores and the notes.")
    option("--cpu", action="store_true", help="Use the CPU even if there is a GPU.")
    questions.add_options(parser)
    arguments = parser.parse_args()
    run, papers = arguments.run, arguments.papers
    tried = trials(run, arguments.learning_rates, arguments.epochs)
    found = groups(outcome(trial, arguments) for trial in tried)
    with whole_folder(arguments.output) as folder:
        table = Table(folder, run, papers)
        for (item, encoding), own in found.items():
            best = chosen(own, papers)
            table.add(item, encoding, best, several=len(own) > 1)
            for group in own:
                failed = [one for one in group if one.failed]
                if group is not best and failed:
                    table.add(item, f"{encoding}, {group[0].trial.hyperparameters}", failed)
            if item in TASKS:
                submission(best, papers, run, folder / "submission" / slug(encoding))
        table.write()


if __name__ == "__main__":
    main()
