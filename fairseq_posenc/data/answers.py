"""Load inputs with the tokens to predict, from text files, as a data set for any kind of model.

Legend: B batch, T tokens of the input, U tokens of the output.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset, data_utils
from numpy.typing import NDArray
from torch import Tensor

from ..compat.checkpoints import CheckpointError
from ..core.reading import NotTextError, read_utf8

#: Files of a folder of examples, besides SPLIT.tsv.
RECORD, DICTIONARY = "answers.json", "dict.txt"
#: Maximum number of digits of a length; Python refuses to convert thousands of digits.
DIGITS = 9
#: Stands in an output for a token that does not count.
UNCOUNTED = "_"
_CURE = "Generate the examples again with recipes/length_tasks/run.sh."
#: Kinds of models that a record may name. Only an encoder-decoder generates its output; the others predict a token at
#: each token of the input.
KINDS = ("decoder", "encoder", "encoder-decoder")


class Example(NamedTuple):
    """Hold an input and the tokens to predict, as ids.

    Args:
        length: Length of the example, in the unit of its task.
        input: Ids of the input's tokens, [T] int64, with <s> at the start.
        output: Ids of the tokens to predict, int64: [T] with padding where no token is predicted, or [U] with </s> at
            the end.
    """

    length: int
    input: Tensor
    output: Tensor


class Record(NamedTuple):
    """Hold the contents of answers.json, which describes a folder of examples.

    Args:
        kind: Kind of the model, one of `KINDS`.
        longest_input, longest_output: Number of tokens of the longest input and output, with <s> and </s>.
    """

    kind: str
    longest_input: int
    longest_output: int


def record(folder: Path) -> Record:
    """Read answers.json, which describes the examples of a folder.

    Raises:
        CheckpointError: The folder has no valid answers.json.
    """
    path = folder / RECORD
    try:
        contents = json.loads(path.read_text("utf-8"))
        result = Record(contents["kind"], int(contents["longest_input"]), int(contents["longest_output"]))
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        problem = f"{path}: cannot read the description of the examples ({error!r})"
        raise CheckpointError(f"{problem}. {_CURE}") from None
    if result.kind not in KINDS:
        problem = f"{path}: the kind of the model is {result.kind!r}, but must be one of {KINDS}"
        raise CheckpointError(f"{problem}. {_CURE}")
    return result


def read(path: Path, dictionary: Dictionary, kind: str) -> list[Example]:
    """Read the examples of a file; each line has a length, an input and an output, with tabs between them.

    Raises:
        CheckpointError: The file cannot be read, or a line is wrong; the message names the line.
    """
    try:
        lines = read_utf8(path).split("\n")
    except NotTextError as error:
        raise CheckpointError(str(error)) from None
    except OSError as error:
        raise CheckpointError(f"{path}: cannot read the examples ({error}). {_CURE}") from None
    return [_example(line, f"{path}:{number}", dictionary, kind) for number, line in enumerate(lines, 1) if line]


def _example(line: str, place: str, dictionary: Dictionary, kind: str) -> Example:
    fields = line.split("\t")
    if len(fields) != 3 or not fields[0].isdecimal() or len(fields[0]) > DIGITS:
        problem = f"{place}: a line must have a length, an input and an output, separated by tabs"
        raise CheckpointError(f"{problem}. {_CURE}")
    source, target = (field.split() for field in fields[1:])
    if unknown := sorted({token for token in [*source, *target] if token != UNCOUNTED and token not in dictionary}):
        raise CheckpointError(f"{place}: the dictionary does not contain {unknown[0]!r}. {_CURE}")
    ids = [dictionary.bos(), *map(dictionary.index, source)]
    pad = dictionary.pad()
    out = [pad if token == UNCOUNTED else dictionary.index(token) for token in target]
    if kind == "encoder-decoder":
        return Example(int(fields[0]), torch.tensor(ids), torch.tensor([*out, dictionary.eos()]))
    if len(source) != len(target):
        problem = f"{place}: the input has {len(source)} tokens, but the output has {len(target)}"
        raise CheckpointError(f"{problem}. {_CURE}")
    return Example(int(fields[0]), torch.tensor(ids), torch.tensor([pad, *out]))


class Answers(FairseqDataset):
    """Provide the examples of a split as a data set.

    Args:
        examples: The examples.
        dictionary: Dictionary of inputs and outputs.
        kind: Kind of the model, one of `KINDS`.
        shuffle: Whether to shuffle the examples, for training.
    """

    def __init__(self, examples: Sequence[Example], dictionary: Dictionary, kind: str, *, shuffle: bool) -> None:
        self.examples, self.kind, self.shuffle = examples, kind, shuffle
        self.pad, self.eos = dictionary.pad(), dictionary.eos()
        self.sizes = np.array([max(len(example.input), len(example.output)) for example in examples])

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"id": index, "example": self.examples[index]}

    def __len__(self) -> int:
        return len(self.examples)

    def collater(self, samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return fairseq's batch: `src_tokens` [B, T], `target` [B, T] or [B, U]; both have padding on the right."""
        if not samples:
            return {}
        examples = [sample["example"] for sample in samples]
        inputs, outputs = [example.input for example in examples], [example.output for example in examples]
        target = data_utils.collate_tokens(outputs, self.pad)
        net_input = {
            "src_tokens": data_utils.collate_tokens(inputs, self.pad),
            "src_lengths": torch.tensor([len(ids) for ids in inputs]),
        }
        if self.kind == "encoder-decoder":
            net_input["prev_output_tokens"] = data_utils.collate_tokens(
                outputs, self.pad, eos_idx=self.eos, move_eos_to_beginning=True
            )
        return {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "nsentences": len(samples),
            "ntokens": int(target.ne(self.pad).sum()),
            "net_input": net_input,
            "target": target,
        }

    def num_tokens(self, index: int) -> int:
        return int(self.sizes[index])

    def size(self, index: int) -> Any:
        """Return the number of input tokens or, for an encoder-decoder, the numbers of input and output tokens."""
        example = self.examples[index]
        pair = len(example.input), len(example.output)
        return pair if self.kind == "encoder-decoder" else pair[0]

    def ordered_indices(self) -> NDArray[np.int64]:
        """Return indices sorted by length, so that batches have little padding; `shuffle` shuffles equal lengths."""
        indices = np.random.permutation(len(self)) if self.shuffle else np.arange(len(self))  # noqa: NPY002 - fairseq's
        return indices[np.argsort(self.sizes[indices], kind="mergesort")]
