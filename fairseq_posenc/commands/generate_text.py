"""`python -m fairseq_posenc generate-text`: continue prompts with a language model that fairseq-train wrote."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from ..compat.checkpoints import CheckpointError, data_beside
from ..compat.registration import register
from ..core.arguments import Parser
from ..core.quiet import warnings_only
from ..core.reading import colon_problem, read_lines
from ..core.refusal import described
from ..core.words import visible
from ..data.words import marked
from ..generation.continuation import continued
from ..generation.prompts import Text
from ..generation.sampling import sampler
from ..hub import tokenizer
from ..hub.pretrained import dictionary_of, part_of
from . import bounded

EPILOG = """\
examples:
  %(prog)s --checkpoint checkpoints/checkpoint_best.pt --prompt 'the city of' --length 50 --samples 3
  %(prog)s --checkpoint checkpoints/checkpoint_best.pt --input prompts.txt --temperature 0 --until-eos

A text does not end at </s>, because language models are usually trained on consecutive lines; </s> is printed as the
end of a line. A model that was trained with --task posenc_lm_memory reads the text in segments and with memory, as in
evaluation.
"""


@dataclass(frozen=True)
class Row:
    """Hold a generated text.

    Args:
        prompt: Number of the prompt, from 1. sample: Number of the text for this prompt, from 1.
        text: The prompt and its continuation.
        tokens: Number of generated tokens.
        log_probability: Sum of these tokens' log-probabilities under the model, without --temperature, --top-k and
            --top-p.
    """

    prompt: int
    sample: int
    text: str
    tokens: int
    log_probability: float


def _parser() -> Parser:
    parser = Parser(
        prog="python -m fairseq_posenc generate-text",
        description="Continue prompts with a language model (posenc_transformer_lm).",
        epilog=EPILOG,
    )

    def number(flag: str, text: str, *bounds: float, whole: bool = True, default: float | None = None) -> None:
        text = text if default is None else f"{text} (default: {default})."
        parser.add_argument(flag, type=bounded(*bounds, whole=whole), default=default, metavar="N", help=text)

    add, prompts = parser.add_argument, parser.add_mutually_exclusive_group(required=True)
    add("--checkpoint", required=True, type=Path, metavar="FILE", help="Checkpoint of a language model.")
    text = "Text to continue. If it is empty, the model starts a new text."
    prompts.add_argument("--prompt", metavar="TEXT", help=text)
    prompts.add_argument("--input", type=Path, metavar="FILE", help="File with one prompt per line.")
    number("--length", "Number of new tokens per text", 1, default=100)
    add("--until-eos", action="store_true", help="End each text before the first </s> that the model generates.")
    text = "Divide log-probabilities by this number before a token is drawn; 0 always takes the most probable token"
    number("--temperature", text, 0, whole=False, default=1.0)
    number("--top-k", "Draw from the N most probable tokens only.", 1)
    text = "Draw from the smallest set of most probable tokens whose probabilities sum up to N (from 0 to 1)."
    number("--top-p", text, 0, 1, whole=False)
    number("--samples", "Number of texts per prompt", 1, default=1)
    number("--seed", "Random seed, set again for each prompt", float("-inf"), default=1)
    text = "Folder with dict.txt. Default: the folder of the checkpoint, or else the folder of the training data."
    add("--data", type=Path, metavar="DIR", help=text)
    text = f"File or folder of the tokenizer that split the training text: {tokenizer.FORMS}. Default: the folder "
    text += "tokenizer/ beside dict.txt; without one, tokens are separated by spaces."
    add("--tokenizer", type=Path, metavar="FILE_OR_FOLDER", help=text)
    add("--device", default="cpu", choices=("cpu", "cuda"), help="Device to compute on (default: cpu).")
    add("--json", action="store_true", help="Print a JSON list with one object per text, and nothing else.")
    return parser


def _check(parser: argparse.ArgumentParser, args: Namespace) -> None:
    """End with an error if options contradict each other."""
    if args.temperature == 0:
        for name in ("top_k", "top_p"):
            if getattr(args, name) is not None:
                flag = f"--{name.replace('_', '-')}"
                parser.error(f"{flag} has no effect with --temperature 0. Leave out one of these flags.")
        if args.samples > 1:
            problem = f"--samples {args.samples}: with --temperature 0, all texts would be equal"
            parser.error(f"{problem}. Leave out --samples.")
    if args.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: torch sees no GPU. Leave out the flag to use the CPU.")


def _check_model(checkpoint: Path) -> None:
    """Raise CheckpointError unless the checkpoint contains a language model of this package."""
    register()
    from fairseq.models import ARCH_MODEL_REGISTRY

    settings = part_of(checkpoint, "model")
    name = settings.get("_name") or settings.get("arch")
    if not getattr(ARCH_MODEL_REGISTRY.get(name), "remembers", False):
        problem = f"{checkpoint}: the model is {name}, which is not a language model of this package"
        raise CheckpointError(f"{problem}. Give a checkpoint of posenc_transformer_lm.")


def _dictionary(args: Namespace) -> Path:
    """Return the path of the model's dict.txt.

    Raises:
        CheckpointError: The file dict.txt is missing.
    """
    path = args.data / "dict.txt" if args.data else dictionary_of(args.checkpoint, part_of(args.checkpoint, "task"))
    if path is None and (beside := data_beside(args.checkpoint)) is not None:
        path = beside / "dict.txt"
    if path is None or not path.is_file():
        problem = f"{args.data} has no dict.txt" if args.data else f"there is no dict.txt for {args.checkpoint}"
        raise CheckpointError(f"{problem}. Give the folder of the training data with --data.")
    if problem := colon_problem(Path(path).parent):
        raise CheckpointError(f"{Path(path).parent}: {problem}")
    return Path(path)


def _context(task: Any, length: int) -> dict[str, Any]:
    """Return the arguments of `continued` that define how the model reads a text of `length` tokens.

    A model that was trained without segments reads the text as one sequence.
    """
    if not getattr(task, "trained", None):
        return {"segment": length, "remembered": 0}
    same_length = bool(task.cfg.same_length)
    return {"segment": task.eval_length, "remembered": task.eval_memory, "same_length": same_length}


def _check_length(model: Any, context: dict[str, Any], prompt: int, length: int) -> None:
    """Raise if the model would read more tokens at once than its encoding is defined for.

    Args:
        prompt: Number of tokens in the prompt, including </s> at its start. length: Number of new tokens.
    """
    total = prompt + length - 1  # the last new token is not read
    limit = model.max_positions()
    if min(total, context["segment"]) + context["remembered"] <= limit:
        return
    allowed = limit - prompt + 1
    cure = f"Lower --length to at most {allowed}" if allowed > 0 else "Shorten the prompt"
    raise ValueError(
        f"--length {length}: with a prompt of {prompt} tokens (including </s> before it), the model would read {total} "
        f"tokens, but its position encoding is defined up to {limit}. {cure}."
    )


def _texts(args: Namespace, prompts: Sequence[str]) -> Iterator[Row]:
    """Yield the continuations of all prompts."""
    _check_model(args.checkpoint)
    from fairseq import checkpoint_utils

    path = _dictionary(args)
    with warnings_only("fairseq"):
        files, overrides = [str(args.checkpoint)], {"data": str(path.parent)}
        (model,), _, task = checkpoint_utils.load_model_ensemble_and_task(files, overrides)
    model.eval().to(args.device)
    dictionary = task.source_dictionary
    eos, unknown = dictionary.eos(), dictionary.unk()
    place = args.tokenizer or tokenizer.beside(path)
    if place is None and marked(dictionary.symbols) is not None:
        _note(
            f"{path} contains pieces of words, but there is no tokenizer beside it. Prompts must already be split into "
            "these pieces. To split text, give --tokenizer FILE_OR_FOLDER"
        )
    text = Text(dictionary, place)
    generator = torch.Generator(args.device)
    excluded = [dictionary.pad(), dictionary.bos()]  # no text that the model was trained on has them
    choose = sampler(
        temperature=args.temperature, top_k=args.top_k, top_p=args.top_p, excluded=excluded, generator=generator
    )
    first = dictionary.bos() if getattr(task.cfg, "add_bos_token", False) else eos
    encoded = [[first, *text.ids(prompt)] for prompt in prompts]
    contexts = [_context(task, len(ids) + args.length) for ids in encoded]
    for number, (ids, context) in enumerate(zip(encoded, contexts, strict=True), 1):
        _check_length(model, context, len(ids), args.length)
        if count := ids.count(unknown):
            found = f"prompt {number} contains tokens ({count} of {len(ids) - 1})"
            _note(f"{found} that are not in {path}: they are <unk>")
    for number, (ids, context) in enumerate(zip(encoded, contexts, strict=True), 1):
        generator.manual_seed(args.seed)
        start = torch.tensor([ids] * args.samples, device=args.device)
        tokens, scores = continued(model, start, args.length, **context, choose=choose)
        for sample, (row, own) in enumerate(zip(tokens[:, len(ids) :].tolist(), scores.tolist(), strict=True), 1):
            count = row.index(eos) if args.until_eos and eos in row else len(row)
            yield Row(number, sample, text.text([*ids[1:], *row[:count]]), count, sum(own[:count]))


def _note(text: str) -> None:
    print(f"generate-text: {text}.", file=sys.stderr)


def main(argv: Sequence[str]) -> int:
    """Print the texts. Return 0, or print an error message of one line and return 1."""
    parser = _parser()
    args = parser.parse_args(argv)
    _check(parser, args)
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    try:
        prompts = [args.prompt] if args.input is None else read_lines(args.input)
        rows = []
        for row in _texts(args, prompts):
            rows.append(row)
            if not args.json:
                several = len(prompts) * args.samples > 1
                print(f"=== prompt {row.prompt}, text {row.sample} ===\n" * several + row.text, flush=True)
    except (CheckpointError, ValueError, OSError) as error:
        print(f"generate-text: {visible(described(error))}", file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps([asdict(row) for row in rows], indent=1, ensure_ascii=False))
    return 0
