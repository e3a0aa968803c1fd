"""Write the answers of a fine-tuned model into the files that SQuAD's own scripts read.

predictions.json has one answer to each question. The file nbest_predictions.json has several answers to each question,
with their logits and probabilities. The file null_odds.json has the score of the empty answer minus the score of the
best span, for evaluate-v2.0.py --na-prob-file. For SQuAD 2.0, texts.json has the predictions before the threshold is
applied, and null_threshold.json has this threshold. The file out_of_reach.json lists the questions whose gold answers
the model cannot predict.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import checkpoint_utils, utils
from numpy.typing import NDArray

import fairseq_posenc.models  # noqa: F401  registers the architectures and the types that checkpoints may contain
from fairseq_posenc.compat.checkpoints import CheckpointError
from fairseq_posenc.data import span_search, spans
from fairseq_posenc.data.span_search import Answers, Search, WindowLogits
from fairseq_posenc.data.spans import Question
from fairseq_posenc.metrics import null_threshold
from recipes.lib.package import whole_folder

from .files import OUT_OF_REACH, TEXTS, THRESHOLD

TOKENS = 8192  # tokens in a batch
SHOWN = 5  # ids of questions printed on the screen


@torch.no_grad()
def logits(model: Any, task: Any, split: str, gpu: bool) -> dict[int, NDArray[np.float64]]:
    """Return the start and end logits of each window, [T, 2] for a window of T pieces, keyed by window number."""
    task.load_dataset(split)
    batches = task.get_batch_iterator(task.dataset(split), max_tokens=TOKENS, disable_iterator_cache=True)
    by_window = {}
    for batch in batches.next_epoch_itr(shuffle=False):
        moved = utils.move_to_cuda(batch) if gpu else batch
        scores = model(**moved["net_input"], spans=True)[0].double().cpu().numpy()
        lengths = batch["net_input"]["src_lengths"].tolist()
        for number, length, window in zip(batch["id"].tolist(), lengths, scores, strict=True):
            by_window[number] = window[:length]
    return by_window


def answers(
    folder: Path, split: str, by_window: dict[int, NDArray[np.float64]], search: Search
) -> Iterator[tuple[str, Answers]]:
    """Yield the id of each question and the answers found for it, in the order of the file."""
    texts = spans.contexts(folder, split)
    reads: dict[int, list[WindowLogits]] = {}
    for number, row in enumerate(spans.rows(folder, split)):
        read = WindowLogits(row.window, row.column, by_window[number][:, 0], by_window[number][:, 1])
        reads.setdefault(row.question, []).append(read)
    for number, question in enumerate(spans.questions(folder, split)):
        context = texts[question.context]
        yield question.id, span_search.search(context.text, context.offsets, reads.get(number, []), search)


def listed(answers: Answers, search: Search, *, null: bool) -> list[dict[str, Any]]:
    """Return the entries of nbest_predictions.json, best first.

    The entries include the empty answer if `null` is true or if the search found no span. If the search found a span,
    the entries always include the best span, because the threshold decides between this span and the empty answer.
    """
    best = [*answers.best]
    if null or not best:
        best = sorted([*best[: max(1, search.n_best - 1)], answers.null], key=lambda answer: -answer.score)
    shares = span_search.probabilities(best)
    return [
        {"text": answer.text, "probability": share, "start_logit": answer.start, "end_logit": answer.end}
        for answer, share in zip(best, shares, strict=True)
    ]


def out_of_reach(questions: Sequence[Question], longest: int) -> dict[str, list[str]]:
    """Return the ids of questions whose gold answers the search cannot find, keyed by the reason.

    Args:
        questions: Prepared questions of a split.
        longest: Maximum number of subword pieces in a predicted answer.
    """
    return {
        "in no window": [question.id for question in questions if question.pieces == 0],
        f"longer than {longest} pieces": [question.id for question in questions if (question.pieces or 0) > longest],
    }


def write(
    output: Path,
    by_question: dict[str, Answers],
    questions: Sequence[Question],
    search: Search,
    threshold: float | None = None,
) -> None:
    """Write the files that the module's docstring lists into a folder, which appears only when it is complete.

    Args:
        output: Folder for the files.
        by_question: Answers that the search found, keyed by question id.
        questions: Prepared questions of the split, with the number of pieces in their gold answers.
        search: Settings of the search for answers.
        threshold: Largest value in null_odds.json with which a question still gets an answer; None means that every
            question gets an answer.
    """
    texts = best = {name: answer.best[0].text if answer.best else "" for name, answer in by_question.items()}
    odds = {name: answer.odds for name, answer in by_question.items()}
    if threshold is not None:
        best = null_threshold.applied(texts, odds, threshold)
    nbest = {name: listed(answer, search, null=threshold is not None) for name, answer in by_question.items()}
    missed = out_of_reach(questions, search.longest)
    files: dict[str, Any] = {"predictions.json": best, "nbest_predictions.json": nbest, "null_odds.json": odds}
    files |= {OUT_OF_REACH: missed}
    files |= {TEXTS: texts, THRESHOLD: threshold} if threshold is not None else {}
    for why, names in missed.items():
        if names:
            text = f"Questions that the model cannot answer, because the gold answers are {why}: {len(names):,}"
            print(f"{text} ({', '.join(names[:SHOWN])}{', ...' if len(names) > SHOWN else ''})", flush=True)
    with whole_folder(output) as folder:
        for name, content in files.items():
            (folder / name).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")


def load(checkpoint: Path, data: Path, *, gpu: bool) -> tuple[Any, Any]:
    """Return the model in evaluation mode, and its fairseq task, which reads the questions in the folder `data`.

    Raises:
        SystemExit: The questions were prepared for another model.
    """
    overrides = {"data": str(data), "required_batch_size_multiple": 1}
    try:
        models, _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], overrides)
    except CheckpointError as error:
        raise SystemExit(f"error: --checkpoint {checkpoint}, --data {data}: {error}") from None
    model = models[0].eval()
    return (model.cuda() if gpu else model), task


class Answering:
    """Answer prepared questions with a fine-tuned model, as the options of the command line say."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.data: Path = arguments.data
        self.search = Search(arguments.n_best, arguments.longest_answer)
        self.gpu = torch.cuda.is_available() and not arguments.cpu
        self.model, self.task = load(arguments.checkpoint, arguments.data, gpu=self.gpu)

    def write(self, output: Path, split: str, threshold: float | None = None) -> int:
        """Answer the questions of a split, write the answers into a folder, and return the number of questions."""
        by_window = logits(self.model, self.task, split, self.gpu)
        questions = spans.questions(self.data, split)
        write(output, dict(answers(self.data, split, by_window, self.search)), questions, self.search, threshold)
        return len(questions)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options shared by all commands that answer questions."""
    option = parser.add_argument
    option("--checkpoint", type=Path, required=True, metavar="FILE", help="Checkpoint of the fine-tuned model.")
    option("--data", type=Path, required=True, metavar="DIR", help="Folder that prepare_spans.py wrote.")
    option("--n-best", type=int, default=20, metavar="N", help="Number of answers per question to save.")
    option("--longest-answer", type=int, default=30, metavar="N", help="Maximum number of pieces of an answer.")
    option("--cpu", action="store_true", help="Use the CPU even if there is a GPU.")
