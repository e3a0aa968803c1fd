"""Write a checkpoint's perplexity, which fairseq-eval-lm also prints, as JSON, for any length of memory and segment."""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils, utils

import fairseq_posenc  # noqa: F401  registers the architectures, and what a checkpoint may hold
from recipes.lib.checkpoints import load, updates
from recipes.lib.package import write_whole


@torch.no_grad()
def evaluate(model: Any, task: Any, criterion: Any, split: str, streams: int, gpu: bool) -> dict[str, float]:
    """Return nats and perplexity per token and per word, and their numbers; every token of the split is scored once."""
    task.load_dataset(split)
    segments = task.get_batch_iterator(task.dataset(split), max_sentences=streams)
    nats, tokens, words = 0.0, 0, 0
    for batch in segments.next_epoch_itr(shuffle=False):
        _, _, found = task.valid_step(utils.move_to_cuda(batch) if gpu else batch, model, criterion)
        nats += float(found.get("nll_loss", found["loss"]))  # with label smoothing, loss is not the likelihood
        tokens += int(found["ntokens"])
        words += int(found["nwords"])
    if tokens != len(task.dataset(split)):
        raise SystemExit(f"error: {split} has {len(task.dataset(split))} tokens, {tokens} were scored")
    return {
        "token_nll": nats / tokens,
        "token_ppl": math.exp(nats / tokens),
        "word_nll": nats / words,
        "word_ppl": math.exp(nats / words),
        "tokens": tokens,
        "words": words,
    }


def clamped(args: str | None, clamp: int) -> str:
    """Return the encoding's options with a limit of distances, unless it was trained with one."""
    given = [word for word in (args or "").split(",") if word]
    return ",".join(given if any(word.startswith("clamp=") for word in given) else [*given, f"clamp={clamp}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--split", default="test")
    parser.add_argument("--memory", type=int, required=True, help="states of earlier segments")
    parser.add_argument("--segment", type=int, required=True, help="tokens")
    parser.add_argument("--streams", type=int, default=10)
    parser.add_argument("--same-length", action="store_true")
    parser.add_argument("--clamp", type=int, help="longest distance, of xl and gcdf")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--cpu", action="store_true", help="also where there is a GPU")
    asked = parser.parse_args()
    overrides: dict[str, Any] = {"data": asked.data, "same_length": asked.same_length}
    overrides |= {"eval_mem_length": asked.memory, "eval_segment_length": asked.segment}
    if asked.clamp:
        state = checkpoint_utils.load_checkpoint_to_cpu(str(asked.checkpoint))
        overrides["pos_enc_args"] = clamped(state["cfg"].model.pos_enc_args, asked.clamp)
    loaded = load(asked.checkpoint, overrides, cpu=asked.cpu)
    criterion = loaded.task.build_criterion(loaded.config.criterion)
    criterion.eval()
    began = time.perf_counter()
    found = evaluate(loaded.model, loaded.task, criterion, asked.split, asked.streams, loaded.on_gpu)
    facts = {
        "split": asked.split,
        "memory": asked.memory,
        "segment": asked.segment,
        "same_length": asked.same_length,
        "pos_enc_args": overrides.get("pos_enc_args", loaded.config.model.pos_enc_args) or "",
        "seconds": time.perf_counter() - began,
        "updates": updates(asked.checkpoint),
        "parameters": sum(weight.numel() for weight in loaded.model.parameters()),
    }
    write_whole(asked.output, json.dumps({**found, **facts}, indent=1))


if __name__ == "__main__":
    main()
