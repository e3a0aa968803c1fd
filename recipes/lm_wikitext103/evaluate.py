"""Write the perplexities of a checkpoint as JSON, one for each length of the memory; fairseq-eval-lm prints the same.

A memory that is longer than the segments of training is evaluated as in Transformer-XL's script: with short segments,
the same number of keys for every token, and a largest distance for the encodings that have one.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils, utils

import fairseq_posenc.models  # noqa: F401  registers the architectures and the types that checkpoints may contain
from fairseq_posenc.core.syntax import names_in
from fairseq_posenc.core.writing import write_whole
from recipes.lib.checkpoints import load, updates
from recipes.lib.encodings import facts


@torch.no_grad()
def evaluate(loaded: Any, split: str, streams: int) -> dict[str, float]:
    """Return the loss in nats, summed over the tokens of the split, and the numbers of tokens and words.

    Every token of the split is scored once.
    """
    task, model, sums = loaded.task, loaded.model, {"nats": 0.0, "tokens": 0, "words": 0}
    criterion = task.build_criterion(loaded.config.criterion)
    criterion.eval()
    task.load_dataset(split)
    segments = task.get_batch_iterator(task.dataset(split), max_sentences=streams)
    for batch in segments.next_epoch_itr(shuffle=False):
        _, _, logged = task.valid_step(utils.move_to_cuda(batch) if loaded.on_gpu else batch, model, criterion)
        sums["nats"] += float(logged.get("nll_loss", logged["loss"]))  # label smoothing changes "loss"
        sums["tokens"] += int(logged["ntokens"])
        sums["words"] += int(logged["nwords"])
    if sums["tokens"] != (size := len(task.dataset(split))):
        problem = f"the {split} set has {size} tokens, but {sums['tokens']} were scored"
        raise SystemExit(f"error: {problem}. Please report this bug.")
    return sums


def clamped(pos_enc: str, args: str, clamp: int) -> str:
    """Return the options of an encoding with `clamp`, unless the encoding has no such option or the user set it."""
    takes = any("clamp" in facts(name)["options"] for name in names_in(pos_enc))
    own = f"clamp={clamp}" if takes and "clamp=" not in pos_enc + args else ""
    return ",".join(filter(None, [args, own]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--checkpoint", type=Path, required=True, metavar="FILE", help="Checkpoint to evaluate.")
    add("--data", required=True, metavar="DIR", help="Folder of binary data.")
    add("--split", required=True, metavar="NAME", help="Split to evaluate.")
    add("--streams", type=int, required=True, metavar="N", help="Number of parallel streams of text.")
    add("--length", type=int, required=True, metavar="N", help="Number of tokens per segment in training.")
    add("--memories", required=True, metavar="N,...", help="Numbers of states of earlier tokens that a layer reads.")
    add("--segment", type=int, required=True, metavar="N", help="Number of tokens per segment with a longer memory.")
    add("--same-length", required=True, metavar="true|false", help="Same number of keys with a longer memory.")
    add("--clamp", type=int, required=True, metavar="N", help="Largest distance with a longer memory (0: no limit).")
    add("--output", type=Path, required=True, metavar="FILE", help="JSON file to write.")
    add("--cpu", action="store_true", help="Use the CPU even if there is a GPU.")
    args = parser.parse_args()
    trained = checkpoint_utils.load_checkpoint_to_cpu(str(args.checkpoint))["cfg"].model
    scores: dict[str, Any] = {}
    for memory in sorted(set(map(int, args.memories.split(",")))):
        longer = memory > args.length
        overrides = {"data": args.data, "eval_mem_length": memory, "same_length": longer and args.same_length == "true"}
        overrides["eval_segment_length"] = args.segment if longer else args.length
        if longer and args.clamp:
            overrides["pos_enc_args"] = clamped(trained.pos_enc, trained.pos_enc_args or "", args.clamp)
        loaded = load(args.checkpoint, overrides, cpu=args.cpu)
        sums = evaluate(loaded, args.split, args.streams)
        perplexities = {kind: math.exp(sums["nats"] / sums[f"{kind}s"]) for kind in ("token", "word")}
        scores[f"memory {memory}"] = {"perplexity": perplexities["token"], "per word": perplexities["word"]}
    scores["best"] = min(scores.values(), key=lambda score: score["perplexity"])
    weights = sum(weight.numel() for weight in loaded.model.parameters())
    facts_of_model = {"tokens": sums["tokens"], "parameters": weights, "updates": updates(args.checkpoint)}
    write_whole(args.output, json.dumps({**scores, **facts_of_model}, indent=1))


if __name__ == "__main__":
    main()
