"""Read a corpus as parallel streams, segment by segment, so that a model can remember earlier segments.

Legend: N tokens, W workers, B streams per worker, G = W B streams, T tokens per segment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import FairseqDataset, iterators
from torch import Tensor

from ..core.refusal import InputError
from .words import Words


class Corpus(FairseqDataset):
    """Present all lines of a split as one sequence of tokens; read a line only when it is needed.

    Args:
        lines: fairseq's indexed data set; each line ends with </s>.
        name: Name of the split.
        first: Id of the symbol before the first token (</s>).
        pad: Id of the symbol that fills the last segment.
        words: Rule that tells which tokens begin a word, for counting words; None if each token is a word.
    """

    def __init__(self, lines: Any, name: str, *, first: int, pad: int, words: Words | None = None) -> None:
        self.lines, self.name, self.first, self.pad, self.words = lines, name, first, pad, words
        self.ends = np.cumsum(np.asarray(lines.sizes, dtype=np.int64))

    def __len__(self) -> int:
        """Return N."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def tokens(self, start: int, end: int) -> Tensor:
        """Return tokens `start` to `end` - 1, int64; index -1 is the symbol before the first token."""
        head = [torch.tensor([self.first])] if start < 0 else []
        start = max(start, 0)
        if start >= end:
            return torch.cat([torch.empty(0, dtype=torch.int64), *head])
        first_line, last_line = (int(np.searchsorted(self.ends, place, side="right")) for place in (start, end - 1))
        text = torch.cat([self.lines[i].long() for i in range(first_line, last_line + 1)])
        begin = int(self.ends[first_line - 1]) if first_line else 0
        return torch.cat([*head, text[start - begin : end - begin]])


class Segments(FairseqDataset):
    """Divide a corpus into batches; item s W + w holds segment s of each of the B streams of worker w.

    Stream g has N // G tokens, and one more if g < N % G. So each token is a target in exactly one stream. The input
    for a target is the preceding token of the corpus, even at the start of a stream. The last segment may be shorter
    than T. In the last segment, streams that are one token shorter than others have padding.

    Args:
        corpus: Tokens to divide.
        streams: B, the number of streams per worker.
        workers: W, the number of workers.
        length: T, the number of tokens per segment.
        flag: Flag that sets B, for error messages.
    Raises:
        ValueError: There are fewer tokens than streams.
    """

    def __init__(self, corpus: Corpus, *, streams: int, workers: int, length: int, flag: str = "--batch-size") -> None:
        self.corpus, self.streams, self.workers, self.length = corpus, streams, workers, length
        total = streams * workers
        if len(corpus) < total:
            raise InputError(
                f"{corpus.name} has {len(corpus)} tokens, but {flag} {streams} on {workers} "
                f"worker{'s' * (workers > 1)} means {total} streams of at least one token each. Lower {flag}."
            )
        share, rest = divmod(len(corpus), total)
        lengths = np.full(total, share, dtype=np.int64) + (np.arange(total) < rest)
        #: stream g has tokens bounds[g] to bounds[g + 1] - 1
        self.bounds = np.concatenate([[0], np.cumsum(lengths)])
        self.longest = int(lengths[0])
        #: number of segments of a stream
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
        """Return the inputs [T] and the targets [T] of one segment of a stream."""
        start = min(int(self.bounds[stream]) + offset, int(self.bounds[stream + 1]))
        end = min(start + width, int(self.bounds[stream + 1]))
        text = self.corpus.tokens(start - 1, end) if end > start else torch.empty(1, dtype=torch.int64)
        row = torch.full((2, width), self.corpus.pad)
        row[0, : end - start], row[1, : end - start] = text[:-1], text[1:]
        return row[0], row[1]

    def _words(self, source: Tensor, target: Tensor, real: Tensor) -> int:
        """Return the number of words in the targets; </s> counts as a word, as in published WikiText perplexities."""
        if self.corpus.words is None:
            return int(real.sum())
        return int(self.corpus.words.starts(source[real].numpy(), target[real].numpy()).sum())

    def collater(self, samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return the only item of the list, because an item is already a batch."""
        (sample,) = samples
        return sample

    def num_tokens(self, index: int) -> int:
        """Return the maximum number of tokens in an item."""
        return self.streams * self.length

    def size(self, index: int) -> int:
        """Return the maximum length of a segment."""
        return self.length


class StreamIterator(iterators.EpochBatchIterator):
    """Iterate over an epoch as fairseq does, but without shuffling.

    Training can resume within an epoch only if the checkpoint was written with the same division into streams.

    Args:
        lengths: Further settings that must not change when training resumes, keyed by flag.
    """

    def __init__(self, dataset: Segments, lengths: Mapping[str, int], **kwargs: Any) -> None:
        batches = [[item] for item in range(len(dataset))]
        workers = {"num_shards": dataset.workers, "disable_shuffling": True}
        super().__init__(dataset, dataset.collater, batches, **workers, **kwargs)
        self.lengths = lengths

    @property
    def shape(self) -> dict[str, int]:
        """Return the settings on which the division into streams depends, keyed by flag."""
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
        """Restore the position in the streams; raise ValueError if the checkpoint divides the text differently."""
        was = state_dict.get("streams", {})
        shape = self.shape
        if not state_dict.get("iterations_in_epoch"):  # a new epoch may use another of several data folders
            del shape["tokens"]
        for flag, now in shape.items():
            if flag not in was:
                raise InputError(
                    "The checkpoint is not from --task posenc_lm_memory. Begin a new epoch with --reset-dataloader."
                )
            if was[flag] != now:
                setting = "The number of training tokens" if flag == "tokens" else flag
                raise InputError(
                    f"{setting} is {now}, but the checkpoint was written with {was[flag]}, so training cannot continue "
                    f"within the epoch. Use {was[flag]} again, or begin a new epoch with --reset-dataloader."
                )
        super().load_state_dict(state_dict)
