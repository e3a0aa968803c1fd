"""Answers of a fine-tuned model, in the files that SQuAD's own scripts read.

predictions.json has an answer of each question, nbest_predictions.json several with their logits and probabilities,
null_odds.json by how much no answer is the better one (evaluate-v2.0.py --na-prob-file); of version 2.0, texts.json has
the predictions before any threshold, null_threshold.json the one that was applied. out_of_reach.json has the questions
whose answers no prediction can be.
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

import fairseq_posenc  # noqa: F401  registers the architectures, and what a checkpoint may hold
from fairseq_posenc.compat.checkpoints import CheckpointError
from fairseq_posenc.data import span_search, spans
from fairseq_posenc.data.span_search import Answer, Found, Read, Search
from fairseq_posenc.data.spans import Question
from fairseq_posenc.metrics import null_threshold
from recipes.lib.folders import whole

from .files import OUT_OF_REACH, TEXTS, THRESHOLD

TOKENS = 8192  # of a batch
SHOWN = 5  # ids on the screen


@torch.no_grad()
def logits(model: Any, task: Any, split: str, gpu: bool) -> dict[int, NDArray[np.float64]]:
    """[T, 2] of each window."""
    task.load_dataset(split)
    made = task.get_batch_iterator(task.dataset(split), max_tokens=TOKENS, disable_iterator_cache=True)
    found = {}
    for batch in made.next_epoch_itr(shuffle=False):
        given = utils.move_to_cuda(batch) if gpu else batch
        scores = model(**given["net_input"], spans=True)[0].double().cpu().numpy()
        for number, length, one in zip(
            batch["id"].tolist(), batch["net_input"]["src_lengths"].tolist(), scores, strict=True
        ):
            found[number] = one[:length]
    return found


def answers(
    folder: Path, split: str, found: dict[int, NDArray[np.float64]], how: Search
) -> Iterator[tuple[str, Found]]:
    """Of each question, in the order of the file."""
    texts = spans.contexts(folder, split)
    reads: dict[int, list[Read]] = {}
    for number, row in enumerate(spans.rows(folder, split)):
        read = Read(row.window, row.column, found[number][:, 0], found[number][:, 1])
        reads.setdefault(row.question, []).append(read)
    for number, question in enumerate(spans.questions(folder, split)):
        context = texts[question.context]
        yield question.id, span_search.search(context.text, context.offsets, reads.get(number, []), how)


def listed(found: Found, how: Search, *, null: bool) -> list[dict[str, Any]]:
    """Of nbest_predictions.json, the best first; one is no answer where there may be none, or nothing is found.

    The best text is always there: of it a threshold decides.
    """
    some = [*found.best]
    if null or not some:
        some = sorted([*some[: max(1, how.n_best - 1)], found.null], key=lambda one: -one.score)
    shares = span_search.probabilities(some)
    return [_entry(answer, share) for answer, share in zip(some, shares, strict=True)]


def _entry(answer: Answer, share: float) -> dict[str, Any]:
    return {"text": answer.text, "probability": share, "start_logit": answer.start, "end_logit": answer.end}


def out_of_reach(asked: Sequence[Question], longest: int) -> dict[str, list[str]]:
    """Questions whose answers are no spans that are looked at, by the reason.

    Args:
        longest: pieces of an answer.
    """
    return {
        "in no window": [one.id for one in asked if one.pieces == 0],
        f"longer than {longest} pieces": [one.id for one in asked if (one.pieces or 0) > longest],
    }


def write(
    output: Path, found: dict[str, Found], asked: Sequence[Question], how: Search, threshold: float | None = None
) -> None:
    """The files, in a folder that is there when all are.

    Args:
        threshold: odds above it say that there is no answer; None: there always is one.
    """
    texts = best = {name: one.best[0].text if one.best else "" for name, one in found.items()}
    odds = {name: one.odds for name, one in found.items()}
    if threshold is not None:
        best = null_threshold.applied(texts, odds, threshold)
    nbest = {name: listed(one, how, null=threshold is not None) for name, one in found.items()}
    missed = out_of_reach(asked, how.longest)
    files: dict[str, Any] = {"predictions.json": best, "nbest_predictions.json": nbest, "null_odds.json": odds}
    files |= {OUT_OF_REACH: missed}
    files |= {TEXTS: texts, THRESHOLD: threshold} if threshold is not None else {}
    for why, names in missed.items():
        if names:
            print(f"{len(names):,} questions whose answers are {why}: {', '.join(names[:SHOWN])}", flush=True)
    with whole(output) as folder:
        for name, content in files.items():
            (folder / name).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")


def load(checkpoint: Path, data: Path, *, gpu: bool) -> tuple[Any, Any]:
    """The model, ready to answer, and its task with these questions.

    Raises:
        SystemExit: questions that were prepared for another model.
    """
    overrides = {"data": str(data), "required_batch_size_multiple": 1}
    try:
        models, _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], overrides)
    except CheckpointError as error:
        raise SystemExit(f"error: --checkpoint {checkpoint}, --data {data}: {error}") from None
    model = models[0].eval()
    return (model.cuda() if gpu else model), task


def common(parser: argparse.ArgumentParser) -> None:
    """The options of all that answers."""
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True, help="what prepare_spans.py made")
    parser.add_argument("--n-best", type=int, default=20)
    parser.add_argument("--longest-answer", type=int, default=30, help="in pieces")
    parser.add_argument("--cpu", action="store_true", help="also where there is a GPU")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common(parser)
    parser.add_argument("--split", default="valid")
    parser.add_argument("--output", type=Path, required=True, help="folder of the files")
    parser.add_argument("--null-threshold", type=float, help="of version 2.0 (0)")
    asked = parser.parse_args()
    version = spans.record(asked.data)["version"]
    if asked.null_threshold is not None and version != "2.0":
        parser.error(f"--null-threshold: all questions of version {version} have answers; leave it out")
    threshold = (asked.null_threshold or 0.0) if version == "2.0" else None
    how = Search(asked.n_best, asked.longest_answer)
    gpu = torch.cuda.is_available() and not asked.cpu
    model, task = load(asked.checkpoint, asked.data, gpu=gpu)
    found = logits(model, task, asked.split, gpu)
    some = dict(answers(asked.data, asked.split, found, how))
    write(asked.output, some, spans.questions(asked.data, asked.split), how, threshold)


if __name__ == "__main__":
    main()
