"""Write the perplexity of a checkpoint as JSON, for given lengths of memory and segment. fairseq-eval-lm prints the
same perplexity.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils, utils

import fairseq_posenc.models  # noqa: F401  registers the architectures and the types that checkpoints may contain
from recipes.lib.checkpoints import load, updates
from recipes.lib.package import write_whole


@torch.no_grad()
def evaluate(model: Any, task: Any, criterion: Any, split: str, streams: int, gpu: bool) -> dict[str, float]:
    """Return the loss in nats and the perplexity, both per token and per word, and the numbers of tokens and words.

    Every token of the split is scored once.
    """
    task.load_dataset(split)
    segments = task.get_batch_iterator(task.dataset(split), max_sentences=streams)
    nats, tokens, words = 0.0, 0, 0
    for batch in segments.next_epoch_itr(shuffle=False):
        _, _, logged = task.valid_step(utils.move_to_cuda(batch) if gpu else batch, model, criterion)
        nats += float(logged.get("nll_loss", logged["loss"]))  # with label smoothing, "loss" is not the likelihood
        tokens += int(logged["ntokens"])
        words += int(logged["nwords"])
    if tokens != (size := len(task.dataset(split))):
        raise SystemExit(f"error: the {split} set has {size} tokens, but {tokens} were scored. Please report this bug.")
    return {
        "token_nll": nats / tokens,
        "token_ppl": math.exp(nats / tokens),
        "word_nll": nats / words,
        "word_ppl": math.exp(nats / words),
        "tokens": tokens,
        "words": words,
    }


def clamped(args: str | None, clamp: int) -> str:
    """Return the options of an encoding with `clamp` added, unless they already contain `clamp`."""
    options = [word for word in (args or "").split(",") if word]
    return ",".join(options if any(word.startswith("clamp=") for word in options) else [*options, f"clamp={clamp}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--checkpoint", type=Path, required=True, metavar="FILE", help="Checkpoint to evaluate.")
    add("--data", required=True, metavar="DIR", help="Folder of binary data.")
    add("--split", default="test", metavar="NAME", help="Split to evaluate (default: test).")
    add(
        "--memory",
        type=int,
        required=True,
        metavar="N",
        help="Number of hidden states of earlier tokens that each layer reads.",
    )
    add("--segment", type=int, required=True, metavar="N", help="Number of tokens per segment.")
    add("--streams", type=int, default=10, metavar="N", help="Number of parallel text streams (default: 10).")
    add("--same-length", action="store_true", help="Let every token attend to the same number of keys.")
    text = "xl and gcdf treat distances above N as N (default: no limit)."
    add("--clamp", type=int, metavar="N", help=text)
    add("--output", type=Path, required=True, metavar="FILE", help="JSON file to write.")
    add("--cpu", action="store_true", help="Use the CPU even if there is a GPU.")
    args = parser.parse_args()
    overrides: dict[str, Any] = {"data": args.data, "same_length": args.same_length}
    overrides |= {"eval_mem_length": args.memory, "eval_segment_length": args.segment}
    if args.clamp:
        state = checkpoint_utils.load_checkpoint_to_cpu(str(args.checkpoint))
        overrides["pos_enc_args"] = clamped(state["cfg"].model.pos_enc_args, args.clamp)
    loaded = load(args.checkpoint, overrides, cpu=args.cpu)
    criterion = loaded.task.build_criterion(loaded.config.criterion)
    criterion.eval()
    began = time.perf_counter()
    scores = evaluate(loaded.model, loaded.task, criterion, args.split, args.streams, loaded.on_gpu)
    facts = {
        "split": args.split,
        "memory": args.memory,
        "segment": args.segment,
        "same_length": args.same_length,
        "pos_enc_args": overrides.get("pos_enc_args", loaded.config.model.pos_enc_args) or "",
        "seconds": time.perf_counter() - began,
        "updates": updates(args.checkpoint),
        "parameters": sum(weight.numel() for weight in loaded.model.parameters()),
    }
    write_whole(args.output, json.dumps({**scores, **facts}, indent=1))


if __name__ == "__main__":
    main()
