"""Measure training and beam search of translation models, relative to fairseq's own `transformer` of the same size.

A training step consists of fairseq's forward pass, loss, backward pass and Adam for `BATCHES` batches of `BATCH_TOKENS`
tokens. A decoding step translates the first sentences of the test set with a beam of 5. All translations have `WORDS`
words, so that the times per word can be compared. The models are untrained, which does not change their speed. The
maximum length of a model (`--max-source-positions`, `--max-target-positions`) is the length of the longest sentence,
but at least 64. A larger maximum would make Linformer slower, because it compresses the keys to a quarter of the
maximum length.
"""

from __future__ import annotations

import contextlib
import functools
import io
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from ...encodings import StackShape, get
from ..clock import Step
from ..listing import on_meta
from .measure import Plan, measure
from .rows import Row, timed
from .settings import Setting, Shape, Subject

#: Sizes of the preset `small`, with which the recipe translates Multi30k.
SMALL = Shape("translation", 128, 4, (), ())
LAYERS = 3
BEAM, WORDS, SENTENCES, BATCH_SENTENCES = 5, 15, 128, 64
BATCH_TOKENS, BATCHES = 2048, 4
#: Smallest maximum length, for which options such as clip=64 are meant.
POSITIONS = 64
_FLAGS = """--share-all-embeddings --dropout 0.1 --optimizer adam --lr 1e-5 --criterion label_smoothed_cross_entropy
    --label-smoothing 0.1 --cpu --seed 1 --num-workers 0""".split()
_SIZE = """--encoder-embed-dim 128 --encoder-ffn-embed-dim 512 --encoder-layers 3 --encoder-attention-heads 4
    --decoder-layers 3 --decoder-attention-heads 4""".split()


def rows(subjects: Iterable[Subject], data: Path, device: torch.device, plan: Plan) -> Iterator[Row]:
    """Yield the rows of every encoding that works in translation. The baseline is fairseq's `transformer`."""
    subjects = list(subjects)
    able = [subject for subject in subjects if sides(subject) and not get(subject.encoding).needs_segments]
    left_out = ", ".join(str(subject) for subject in subjects if subject not in able)
    if left_out:
        needs = "these encodings need [CLS] or segments, which translation models do not have"
        print(f"bench: {needs}: {left_out}", file=sys.stderr)
    settings = (
        Setting("translation", "train", SMALL, BATCH_TOKENS, BATCHES, device, layers=LAYERS),
        Setting("translation", "infer", SMALL, WORDS, SENTENCES, device, layers=LAYERS),
    )
    pairs = [(subject, setting) for setting in settings for subject in able]
    yield from map(timed, measure(pairs, replace(plan, build=functools.partial(step_of, data))))


def step_of(data: Path, subject: Subject | None, setting: Setting) -> Step:
    """Return a function that runs one step with the encoding, or with fairseq's `transformer` if `subject` is None."""
    arch = ["--arch", "transformer"] if subject is None else ["--arch", "posenc_transformer_small", *flags(subject)]
    most = str(_longest(data))
    with _quiet():
        cfg, task = _task(data, *_SIZE, *arch, "--max-source-positions", most, "--max-target-positions", most)
        torch.manual_seed(cfg.common.seed)
        model = task.build_model(cfg.model)
    return (_training if setting.mode == "train" else _decoding)(cfg, task, model)


def _task(data: Path, *model: str) -> tuple[Any, Any]:
    """Return fairseq's configuration and translation task for these flags of the model."""
    from fairseq import options, tasks
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    words = [str(data), "--task", "translation", *_FLAGS, *model, "--max-tokens", str(BATCH_TOKENS)]
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), words))
    return cfg, tasks.setup_task(cfg.task)


@functools.cache
def _longest(data: Path) -> int:
    """Return the number of tokens of the longest sentence, but at least `POSITIONS`."""
    with _quiet():
        _, task = _task(data, "--arch", "transformer")
        for split in ("train", "test"):
            task.load_dataset(split)
    sizes = (size for dataset in task.datasets.values() for size in (dataset.src_sizes, dataset.tgt_sizes))
    return max(POSITIONS, *(int(size.max()) for size in sizes))


def sides(subject: Subject) -> list[str]:
    """Return the parts of a translation model (encoder, decoder) that support this encoding without a [CLS]."""
    shapes = {
        side: StackShape(LAYERS, SMALL.heads, SMALL.dim, 512, causal=side == "decoder")
        for side in ("encoder", "decoder")
    }
    return [side for side, shape in shapes.items() if on_meta(subject.encoding, subject.options, shape)]


def flags(subject: Subject) -> list[str]:
    """Return the flags for the encoding.

    If only the encoder or only the decoder supports the encoding, the other one gets no encoding.
    """
    able = sides(subject)
    words = [] if len(able) == 2 else ["--pos-enc", "none"]
    for side in [""] if len(able) == 2 else [f"-{able[0]}"]:
        words += [f"--pos-enc{side}", subject.encoding]
        words += [f"--pos-enc{side}-args", subject.options] if subject.options else []
    return words


def _training(cfg: Any, task: Any, model: Any) -> Step:
    from fairseq import optim

    criterion = task.build_criterion(cfg.criterion)
    optimizer = optim.build_optimizer(cfg.optimizer, [p for p in model.parameters() if p.requires_grad])
    batches = _batches(task, "train", cfg, BATCHES)

    def train() -> None:
        for number, batch in enumerate(batches):
            optimizer.zero_grad()
            task.train_step(batch, model, criterion, optimizer, number)
            optimizer.clip_grad_norm(0.0)
            optimizer.step()

    return train


def _decoding(cfg: Any, task: Any, model: Any) -> Step:
    from fairseq.dataclass.configs import GenerationConfig

    model.eval()
    model.prepare_for_inference_(cfg)
    length = GenerationConfig(beam=BEAM, max_len_a=0, max_len_b=WORDS, min_len=WORDS)
    generator = task.build_generator([model], length)
    batches = _batches(task, "test", cfg, SENTENCES // BATCH_SENTENCES)

    def translate() -> None:
        for batch in batches:
            task.inference_step(generator, [model], batch)

    return translate


def _batches(task: Any, split: str, cfg: Any, most: int) -> list[Any]:
    """Return the first batches of a split, in an order that is the same for all models."""
    with _quiet():
        task.load_dataset(split)
        iterator = task.get_batch_iterator(
            dataset=task.dataset(split),
            max_tokens=BATCH_TOKENS,
            max_sentences=None if split == "train" else BATCH_SENTENCES,
            max_positions=(1024, 1024),
            required_batch_size_multiple=8,
            seed=cfg.common.seed,
        )
        return list(islice(iterator.next_epoch_itr(shuffle=split == "train"), most))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Hide output on stdout and all Python warnings, such as those of Hydra and torch about fairseq's code."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
