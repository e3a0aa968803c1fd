"""Answer prepared questions with a fine-tuned model, write the files that SQuAD's own scripts read, and score them.

python -m recipes.lib.finetuning.questions --checkpoint MODEL --data data-bin/squad-spans --output predictions

predictions.json has one answer to each question. The file nbest_predictions.json has several answers to each question,
with their logits and probabilities. The file null_odds.json has the score of the empty answer minus the score of the
best span, for evaluate-v2.0.py --na-prob-file. For SQuAD 2.0, texts.json has the predictions before the threshold is
applied. The file out_of_reach.json lists the questions whose gold answers the model cannot predict.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from fairseq import checkpoint_utils, utils
from numpy.typing import NDArray

import fairseq_posenc.models  # noqa: F401  registers the architectures and the types that checkpoints may contain
from fairseq_posenc.compat.checkpoints import CheckpointError
from fairseq_posenc.core.writing import whole_folder
from fairseq_posenc.data import span_search, spans
from fairseq_posenc.data.span_search import Answers, Search, WindowLogits
from fairseq_posenc.data.spans import Question
from fairseq_posenc.metrics import null_threshold, squad

from . import question_scores
from .question_scores import ODDS, TEXTS

OUT_OF_REACH = "out_of_reach.json"  # questions that the model cannot answer correctly, by reason
TOKENS = 8192  # tokens in a batch


def load(checkpoint: Path, data: Path, *, gpu: bool, state: Any = None) -> tuple[Any, Any]:
    """Return the model in evaluation mode, and its fairseq task, which reads the items in the folder `data`.

    Args:
        state: Contents of the checkpoint, if they are read already.
    Raises:
        SystemExit: The items were prepared for another model.
    """
    overrides = {"data": str(data), "required_batch_size_multiple": 1}
    try:
        models, _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], overrides, state=state)
    except CheckpointError as error:
        raise SystemExit(f"error: --checkpoint {checkpoint}, --data {data}: {error}") from None
    model = models[0].eval()
    return (model.cuda() if gpu else model), task


@torch.no_grad()
def logits(model: Any, task: Any, split: str, *, gpu: bool) -> dict[int, NDArray[np.float64]]:
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


class Options(NamedTuple):
    """Hold the options of answering.

    Args:
        search: Settings of the search for answers.
        threshold: SQuAD 2.0 only: largest odds of no answer with which a question still gets an answer.
        gpu: Whether the model is on a GPU.
    """

    search: Search
    threshold: float
    gpu: bool


def predict(model: Any, task: Any, folder: Path, split: str, output: Path, options: Options) -> None:
    """Write the files that the module's docstring lists into the folder `output`, which appears only complete."""
    search, questions = options.search, spans.questions(folder, split)
    by_question = dict(answers(folder, split, logits(model, task, split, gpu=options.gpu), search))
    texts = {name: answer.best[0].text if answer.best else "" for name, answer in by_question.items()}
    odds = {name: answer.odds for name, answer in by_question.items()}
    v20 = spans.record(folder)["version"] == "2.0"
    files: dict[str, Any] = {
        "predictions.json": null_threshold.applied(texts, odds, options.threshold) if v20 else texts,
        "nbest_predictions.json": {name: listed(answer, search, null=v20) for name, answer in by_question.items()},
        ODDS: odds,
        OUT_OF_REACH: out_of_reach(questions, search.longest),
        **({TEXTS: texts} if v20 else {}),
    }
    with whole_folder(output) as partial:
        for name, content in files.items():
            (partial / name).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")


def out_of_reach(questions: Sequence[Question], longest: int) -> dict[str, list[str]]:
    """Return the ids of questions whose gold answers the search cannot find, keyed by the reason."""
    return {
        "in no window": [question.id for question in questions if question.pieces == 0],
        f"longer than {longest} pieces": [question.id for question in questions if (question.pieces or 0) > longest],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--checkpoint", type=Path, required=True, metavar="FILE", help="Checkpoint of the fine-tuned model.")
    option("--data", type=Path, required=True, metavar="DIR", help="Folder that prepare_spans.py wrote.")
    option("--split", default="valid", metavar="NAME", help="Split with the questions to answer (default: valid).")
    option("--rules", choices=squad.RULES, help="Scoring rules (default: the rules of the SQuAD version in --data).")
    option("--output", type=Path, required=True, metavar="DIR", help="Folder for the predictions.")
    option("--cpu", action="store_true", help="Use the CPU even if there is a GPU.")
    add_options(parser)
    arguments = parser.parse_args()
    options, folder = of_arguments(arguments), arguments.data
    model, task = load(arguments.checkpoint, folder, gpu=options.gpu)
    predict(model, task, folder, arguments.split, arguments.output, options)
    scores = question_scores.scored(folder, arguments.split, arguments.output, options.threshold, arguments.rules)
    print(json.dumps(scores, indent=1))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the search for answers."""
    option = parser.add_argument
    option("--n-best", type=int, default=20, metavar="N", help="Number of answers per question to save.")
    option("--longest-answer", type=int, default=30, metavar="N", help="Maximum number of pieces of an answer.")
    text = "For SQuAD 2.0: give the empty answer if it scores more than X above the best span (default: 0)."
    option("--null-threshold", type=float, default=0.0, metavar="X", help=text)


def of_arguments(arguments: argparse.Namespace) -> Options:
    """Return the options of answering that a command line names."""
    gpu = torch.cuda.is_available() and not arguments.cpu
    return Options(Search(arguments.n_best, arguments.longest_answer), arguments.null_threshold, gpu)


if __name__ == "__main__":
    main()
