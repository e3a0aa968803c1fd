"""Load the encoder or decoder of a trained model, and return its attention weights and logits on text.

Legend: h heads, n columns, D head width, d model width.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..attention import Projected
from ..attention.formula import explicit_weights, logits
from ..attention.module import SelfAttention
from ..compat.checkpoints import data_beside
from ..compat.registration import register
from ..core.base import PositionEncoding
from ..core.compose import Composition, LayerView
from ..core.quiet import without
from ..core.reading import colon_problem
from ..core.refusal import described


class FigureError(ValueError):
    """Raised if a model or its data lack the numbers of a figure; the message says what to choose instead."""


@dataclass(frozen=True)
class Stack:
    """Hold the parts of an encoder or decoder that the figures need.

    Args:
        name: Path of the checkpoint, followed by `(encoder)` or `(decoder)` if both have a position encoding.
        encoding: Position encoding, which may consist of several.
        attention: Self-attention module of each layer.
        model, task: The fairseq model and task; None if there is no checkpoint. The task is None, too, if its
            dictionary is missing.
        side: `encoder` or `decoder`.
        missing: What is missing, if the task is None.
        label: Title in figures; empty for the name of the encoding.
    """

    name: str
    encoding: Composition
    attention: tuple[SelfAttention, ...]
    model: Any = None
    task: Any = None
    side: str = "encoder"
    missing: str = ""
    label: str = ""

    @property
    def title(self) -> str:
        """Return what figures call this encoder or decoder."""
        return self.label or self.encoding.name

    @property
    def members(self) -> dict[str, PositionEncoding]:
        """Return the encodings that `encoding` consists of, keyed by name."""
        return self.encoding.members

    def layer(self, number: int) -> SelfAttention:
        """Return the self-attention of layer `number`, counted from 1.

        Raises:
            FigureError: The model has no layer with this number.
        """
        if not 1 <= number <= len(self.attention):
            raise FigureError(
                f"{self.name} has no layer {number}. Choose one of the layers 1 to {len(self.attention)} with --layer."
            )
        return self.attention[number - 1]


class Seen(NamedTuple):
    """Hold the attention that a layer computes for one text of n tokens.

    Args:
        logits: Logits before the mask and the softmax, [h, n, n].
        weights: Attention weights after the softmax, [h, n, n].
    """

    logits: Tensor
    weights: Tensor


def load(checkpoint: str | Path, data: Path | None = None, side: str | None = None) -> Stack:
    """Load the encoder or decoder of a checkpoint that fairseq wrote, in evaluation mode on the CPU.

    Args:
        checkpoint: Checkpoint of a model with a posenc_* architecture, such as a masked language model or a translation
            model.
        data: Folder of the dictionaries and of the text; None for the folder that was used in training, which is also
            looked for beside the checkpoint. If that folder is missing, the model is loaded without its task, and
            figures that need text are refused.
        side: `encoder` or `decoder`. None chooses the encoder, or the decoder if only the decoder has a position
            encoding of this package.

    Raises:
        FigureError: The model has no such encoder or decoder with a position encoding of this package.
        CheckpointError: The file cannot be read.
    """
    register()
    from fairseq import checkpoint_utils

    if not Path(checkpoint).is_file():
        raise FigureError(f"--checkpoint {checkpoint}: there is no such file. Give a checkpoint of fairseq-train.")
    if data and (problem := colon_problem(data)):
        raise FigureError(f"--data {data}: {problem}")
    load_model, missing = checkpoint_utils.load_model_ensemble_and_task, ""
    try:
        (model,), _, task = load_model([str(checkpoint)], {"data": str(data)} if data else {})
    except FileNotFoundError as error:
        if data:
            raise FigureError(f"--data {data}: {described(error)}") from error
        if (beside := data_beside(checkpoint)) is not None:
            return load(checkpoint, beside, side)
        try:
            (model,), _, _ = load_model([str(checkpoint)], task=_Sizes(checkpoint))
        except RuntimeError as misfit:
            problem = " ".join(str(misfit).split()).rstrip(". ")
            raise FigureError(f"{checkpoint}: {problem}. Set --data to the folder with the dictionary.") from misfit
        task, missing = None, described(error).rstrip(".")
    model.eval()
    stacks = {name: stack for name in ("encoder", "decoder") if (stack := _with_encoding(getattr(model, name, None)))}
    if not stacks or side not in (None, *stacks):
        kind = f"an {side}" if side == "encoder" else f"a {side}" if side else "an encoder or decoder"
        choose = "Leave out --side" if side and stacks else "Choose a checkpoint of a posenc_* architecture"
        raise FigureError(f"{checkpoint} does not have {kind} with a position encoding of this package. {choose}.")
    name = side or next(iter(stacks))
    shown = str(checkpoint) if len(stacks) == 1 else f"{checkpoint} ({name})"
    module = stacks[name]
    label = "" if len(stacks) == 1 else f"{module.pos.name} ({name})"
    attention = tuple(layer.self_attn for layer in module.layers)
    return Stack(shown, module.pos, attention, model, task, name, missing, label)


def told_apart(stacks: Sequence[Stack]) -> list[Stack]:
    """Return the stacks; those whose encodings have the same name get the ends of their paths as labels, too."""
    same = Counter(stack.title for stack in stacks)
    return [
        replace(stack, label=f"{stack.title}: {_end(stack, stacks)}") if same[stack.title] > 1 else stack
        for stack in stacks
    ]


def _end(stack: Stack, stacks: Sequence[Stack]) -> str:
    """Return the shortest end of a stack's path, of at least a folder and a file, that no other path has."""
    parts, *others = (Path(each.name.removesuffix(f" ({each.side})")).parts for each in (stack, *stacks))
    ends = (parts[-length:] for length in range(2, len(parts) + 1))
    return "/".join(next((end for end in ends if [other[-len(end) :] for other in others].count(end) == 1), parts))


class _Sizes:
    """Stand in for a task whose dictionaries are missing: its dictionaries have only the sizes of the word tables."""

    gives_unmasked_tokens = True  # the model may limit attention to documents

    def __init__(self, checkpoint: str | Path) -> None:
        from fairseq import checkpoint_utils

        state = checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint))
        rows = {side: _words(state["model"], side) for side in ("encoder", "decoder")}
        self.source_dictionary = _dictionary(rows["encoder"] or rows["decoder"])
        self.target_dictionary = _dictionary(rows["decoder"] or rows["encoder"])
        self._longest = state["cfg"].task.get("tokens_per_sample") or state["cfg"].task.get("max_positions")

    def max_positions(self) -> Any:
        return self._longest

    def build_model(self, settings: Any) -> Any:
        from fairseq import models

        return models.build_model(settings, self)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Ignore the state of the task, which figures do not need."""


def _words(weights: Mapping[str, Tensor], side: str) -> int:
    """Return the number of rows of the word table of an encoder or decoder, which may have several parts."""
    table = re.compile(rf"{side}\.(.+\.)?embed_tokens\.((words\.)?weight|embeddings\.\d+\.0\.weight)")
    return sum(len(weight) for name, weight in weights.items() if table.fullmatch(name))


def _dictionary(size: int) -> Any:
    from fairseq.data import Dictionary

    return Dictionary(extra_special_symbols=[f"word {number}" for number in range(len(Dictionary()), size)])


def _with_encoding(module: Any) -> Any:
    """Return the encoder or decoder in a module, or None if its position encoding is not from this package."""
    stack = getattr(module, "sentence_encoder", module)  # a masked language model's
    return stack if isinstance(getattr(stack, "pos", None), Composition) else None


@torch.no_grad()
def on_text(stack: Stack, split: str, texts: int, layer: int, columns: int = 1) -> Iterator[Seen]:
    """Yield the attention of a layer for the first `texts` texts of a split, each without padding.

    Each sample of the task is one text. Texts of fewer than `columns` tokens are skipped. Samples of a masked language
    model are masked as in training. A language model with memory also reads earlier segments, but the logits and
    weights of their tokens are left out.

    Raises:
        FigureError: The encoding compresses the keys, so that a key no longer belongs to one token.
    """
    if stack.layer(layer).view.has("compress"):
        raise FigureError(
            f"{stack.name}: {stack.encoding.name} compresses the keys, so no logit belongs to a pair of tokens. "
            "Choose a model whose encoding does not compress the keys."
        )
    if stack.task is None:
        raise FigureError(
            f"{stack.name}: {stack.missing}. This figure reads text. Set --data to the folder with the dictionary and "
            "the text."
        )
    stack.task.load_dataset(split)
    dataset = stack.task.dataset(split)
    batches = stack.task.get_batch_iterator(dataset, max_sentences=1, required_batch_size_multiple=1)
    # fairseq always asks for pinned memory, and torch warns on a machine without a GPU.
    with without("'pin_memory' argument is set as true", UserWarning):
        samples = batches.next_epoch_itr(shuffle=False)  # in the order of their lengths
        long_enough = (sample for sample in samples if _tokens(stack, sample).shape[1] >= columns)
        for sample in islice(long_enough, texts):
            with watched(stack.layer(layer)) as calls:
                stack.model(**sample["net_input"])
            projected, call = calls[-1]
            own = slice(call.positions.offset, None)  # without the columns of memory
            yield Seen(*(values(projected, call)[0, :, :, own].float() for values in (logits, explicit_weights)))


def _tokens(stack: Stack, sample: Mapping[str, Any]) -> Tensor:
    """Return the tokens of a sample that the encoder or decoder reads, [1, n]."""
    inputs = sample["net_input"]
    target_side = stack.side == "decoder" and "prev_output_tokens" in inputs
    tokens: Tensor = inputs["prev_output_tokens" if target_side else "src_tokens"]
    return tokens


def first_columns(stack: Stack, split: str, texts: int, layer: int, columns: int) -> list[Seen]:
    """Return the attention of a layer between the first `columns` tokens of `texts` texts (see `on_text`).

    Raises:
        FigureError: All texts have fewer than `columns` tokens.
    """
    seen = list(on_text(stack, split, texts, layer, columns))
    if not seen:
        raise FigureError(f"{stack.name}: no text of {split} has {columns} tokens or more. Lower --columns.")
    return [Seen(*(values[:, :columns, :columns] for values in item)) for item in seen]


@contextmanager
def watched(attention: SelfAttention) -> Iterator[list[tuple[Projected, LayerView]]]:
    """Record in a `with` block the queries, the keys and the encoding's hooks of each forward call of a layer."""
    calls: list[tuple[Projected, LayerView]] = []
    attention.watch = lambda projected, call: calls.append((projected, call))
    try:
        yield calls
    finally:
        attention.watch = None


@torch.no_grad()
def position_part(stack: Stack, layer: int, length: int, segments: Tensor | None = None) -> Tensor:
    """Return the part of a layer's logits that does not depend on the tokens, [h, length, length] in float32.

    The result is the sum of all biases. If the encoding adds vectors P at the input, their product
    P W_Q W_K^T P^T / sqrt(D) is added (Chen et al. 2021, Theorem 1). The biases of the projections, and a layer norm
    before the layer, are left out. If the encoding has gates that depend on the layer's input, they are computed
    from P, or from zeros if the encoding adds no vectors at the input.

    Args:
        segments: Segment of each column, [length], for encodings that read segments.

    Raises:
        FigureError: No part of the logits is independent of the tokens.
    """
    attention, encoding, dim = stack.layer(layer), stack.encoding, stack.encoding.stack.dim
    tokens = torch.arange(length)[None] + 1
    if encoding.needs_segments and segments is None:
        segments = torch.zeros(length, dtype=torch.long)
    columns = None if encoding.stack.drawn is None else torch.arange(length)  # the axes of figures are not random
    one = None if segments is None else segments[None]
    where = encoding.positions(tokens, pad=0, boundaries=(0,), segments=one, ids=columns)
    x = encoding.embed(torch.zeros(1, length, dim), where)
    q, k = (
        (x @ projection.weight.t()).unflatten(-1, (attention.num_heads, -1)).transpose(1, 2)
        for projection in (attention.q_proj, attention.k_proj)
    )
    call = attention.view.at(where, encoding.per_layer(where)[layer - 1]).with_inputs(x)
    part = logits(Projected(call.project_q(q), call.project_k(k), k, q, k), call)[0]
    if not part.any():
        raise FigureError(
            f"{stack.name}: no part of the logits of {encoding.name} is independent of the tokens. Choose a model "
            "whose encoding adds a bias, such as t5 or diet-abs."
        )
    return part.expand(attention.num_heads, -1, -1)
