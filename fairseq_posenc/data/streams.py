"""A corpus read as parallel streams, segment by segment: what a memory of earlier segments is of.

Legend: N tokens, W workers, B streams a worker, G = W B streams, T tokens of a segment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import FairseqDataset, iterators
from torch import Tensor

from .words import Words


class Corpus(FairseqDataset):
    """All lines of a split behind each other; lines are read when asked for.

    Args:
        lines: an indexed data set of fairseq's; each line ends with </s>.
        name: of the split. first: the symbol before the first token (</s>).
        pad: fills the last segment. words: tells words of several tokens apart; None: each is one.
    """

    def __init__(self, lines: Any, name: str, *, first: int, pad: int, words: Words | None = None) -> None:
        self.lines, self.name, self.first, self.pad, self.words = lines, name, first, pad, words
        self.ends = np.cumsum(np.asarray(lines.sizes, dtype=np.int64))

    def __len__(self) -> int:
        """N."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def tokens(self, start: int, end: int) -> Tensor:
        """Tokens `start` to `end` - 1, int64; -1 is the symbol before the first."""
        head = [torch.tensor([self.first])] if start < 0 else []
        start = max(start, 0)
        if start >= end:
            return torch.cat([torch.empty(0, dtype=torch.int64), *head])
        one, last = (int(np.searchsorted(self.ends, place, side="right")) for place in (start, end - 1))
        text = torch.cat([self.lines[i].long() for i in range(one, last + 1)])
        begin = int(self.ends[one - 1]) if one else 0
        return torch.cat([*head, text[start - begin : end - begin]])


class Segments(FairseqDataset):
    """The batches of a corpus, in order: item s W + w is segment s of worker w's B streams.

    Stream g has N // G tokens, and one more where g < N % G, so each token is the target of one stream once. The
    input at a target is the token before it in the corpus, also at the start of a stream. The last segment may be
    shorter than T; streams that end a token before the others have a pad there.

    Args:
        corpus: the tokens. streams: B. workers: W. length: T. flag: sets B, for messages.
    Raises:
        ValueError: fewer tokens than streams.
    """

    def __init__(self, corpus: Corpus, *, streams: int, workers: int, length: int, flag: str = "--batch-size") -> None:
        self.corpus, self.streams, self.workers, self.length = corpus, streams, workers, length
        total = streams * workers
        if len(corpus) < total:
            raise ValueError(
                f"{corpus.name} has {len(corpus)} tokens, fewer than the {total} streams that {flag} {streams} makes "
                f"on {workers} worker{'s' * (workers > 1)}: lower {flag}"
            )
        share, rest = divmod(len(corpus), total)
        lengths = np.full(total, share, dtype=np.int64) + (np.arange(total) < rest)
        #: stream g is tokens bounds[g] to bounds[g + 1] - 1
        self.bounds = np.concatenate([[0], np.cumsum(lengths)])
        self.longest = int(lengths[0])
        #: segments of a stream
        self.count = -(-self.longest // length)

    def __len__(self) -> int:
        return self.count * self.workers

    def __getitem__(self, item: int) -> dict[str, Any]:
        segment, worker = divmod(int(item), self.workers)
        width = min(self.length, self.longest - segment * self.length)
        rows = [self._row(worker * self.streams + b, segment * self.length, width) for b in range(self.streams)]
        source, target = (torch.stack(side) for side in zip(*rows, strict=True))
        real = target.ne(self.corpus.pad)
        return {
            "id": torch.arange(self.streams) + worker * self.streams,
            "nsentences": self.streams,
            "ntokens": int(real.sum()),
            "nwords": self._words(source, target, real),
            "segment": segment,
            "net_input": {"src_tokens": source, "src_lengths": real.sum(1)},
            "target": target,
        }

    def _row(self, stream: int, offset: int, width: int) -> tuple[Tensor, Tensor]:
        """Inputs and targets of a stream's segment, [T] each."""
        start = min(int(self.bounds[stream]) + offset, int(self.bounds[stream + 1]))
        end = min(start + width, int(self.bounds[stream + 1]))
        text = self.corpus.tokens(start - 1, end) if end > start else torch.empty(1, dtype=torch.int64)
        row = torch.full((2, width), self.corpus.pad)
        row[0, : end - start], row[1, : end - start] = text[:-1], text[1:]
        return row[0], row[1]

    def _words(self, source: Tensor, target: Tensor, real: Tensor) -> int:
        """How many targets begin a word; each </s> is one, as in the published perplexities of WikiText."""
        if self.corpus.words is None:
            return int(real.sum())
        return int(self.corpus.words.starts(source[real].numpy(), target[real].numpy()).sum())

    def collater(self, samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """An item is a batch."""
        (sample,) = samples
        return sample

    def num_tokens(self, index: int) -> int:
        """At most."""
        return self.streams * self.length

    def size(self, index: int) -> int:
        """At most."""
        return self.length


class StreamIterator(iterators.EpochBatchIterator):
    """fairseq's iterator of an epoch, never shuffled, which resumes the same streams only.

    Args:
        lengths: by flag, what else must be the same where a training goes on.
    """

    def __init__(self, dataset: Segments, lengths: Mapping[str, int], **kwargs: Any) -> None:
        batches = [[item] for item in range(len(dataset))]
        workers = {"num_shards": dataset.workers, "disable_shuffling": True}
        super().__init__(dataset, dataset.collater, batches, **workers, **kwargs)
        self.lengths = lengths

    @property
    def shape(self) -> dict[str, int]:
        """What places in the streams depend on, by the flag that sets it."""
        data = self.dataset
        return {
            "--batch-size": data.streams,
            "--distributed-world-size": data.workers,
            "--tokens-per-sample": data.length,
            **self.lengths,
            "tokens": len(data.corpus),
        }

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "streams": self.shape}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Raises ValueError where the streams are others than those of the checkpoint."""
        was = state_dict.get("streams", {})
        shape = self.shape
        if not state_dict.get("iterations_in_epoch"):  # an epoch begins, maybe on the next of several folders
            del shape["tokens"]
        for flag, now in shape.items():
            if flag not in was:
                raise ValueError(
                    "this checkpoint was not made with --task posenc_lm_memory: --reset-dataloader begins an epoch"
                )
            if was[flag] != now:
                what = "the training data had" if flag == "tokens" else flag
                raise ValueError(
                    f"{what} {was[flag]} in the checkpoint, {now} here: places in the streams are others. Go on "
                    f"with {was[flag]}, or begin the data anew with --reset-dataloader"
                )
        super().load_state_dict(state_dict)
