"""Count the parameters of the DIET paper's models, and compare the counts with the paper's Table 6.

Each model is BERT-base with a masked-LM head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tabulate import tabulate

from ..encodings import StackShape
from ..papers.reading import figures

#: Vocabulary size of the models, by the ending of the columns in Table 6. For the English models the text says 30,000
#: pieces, but only BERT's 30,522 give the printed totals.
VOCABULARIES = {"": 30_522, ", 100 languages": 120_000}
#: For each vocabulary: our total and the printed one, our growth over learned positions and the printed one.
COLUMNS = ("total", "printed total", "more", "printed more")
#: Notes on totals, by the label of the encoding.
NOTES = {
    "learned": "total of the whole model (DIET paper, Table 6)",
    # 3.14M for positions, which no count at n = 512 gives
    "shaw": "total of the whole model (DIET paper, Table 6); the paper does not explain this number",
}
NOTE = "total of the whole model, without the 393,216 parameters of the input table"
#: Notes on the growth that Table 6 prints.
ROUNDED = (
    "The paper prints +0.0% for models that are smaller than the model with learned positions. From the paper's "
    "totals for 100 languages, one computes +10.3% and +0.7%, but the paper prints +10.0% and +0.6%."
)


def total(count: int, shape: StackShape, vocabulary: int = VOCABULARIES[""]) -> int:
    """Return the number of parameters of a BERT with a masked-LM head and a position encoding of `count` parameters."""
    d = shape.dim
    embeddings = vocabulary * d + 2 * d + 2 * d  # words, segments, the norm
    layer = 4 * (d * d + d) + (4 * d * d + 4 * d) + (4 * d * d + d) + 4 * d
    heads = (d * d + d) + (d * d + d + 2 * d) + vocabulary  # pooler, the head's transform and bias
    return embeddings + shape.layers * layer + heads + count


def whole(label: str, count: int | None, shape: StackShape) -> dict[str, Any]:
    """Return the number of parameters of a whole model, next to the numbers in Table 6.

    For both vocabularies, also return by how many percent the model is larger than the model with learned positions.


    Args:
        label: Encoding, with its options in brackets.
        count: Number of parameters of the encoding. If `count` is None, all returned values are None.
        shape: Size of the model.
    """
    facts: dict[str, Any] = {}
    printed = {figure.column: figure.printed for figure in figures("DIET", table="Table 6", encoding=label)}
    for ending, vocabulary in VOCABULARIES.items():
        names = [f"{name}{ending}" for name in COLUMNS]
        if count is None:
            facts |= dict.fromkeys(names)
            continue
        ours, baseline = (total(number, shape, vocabulary) for number in (count, shape.max_length * shape.dim))
        growth = "-" if label == "learned" else f"{100 * (ours / baseline - 1):+.1f}%"
        values = (ours, printed[f"parameters{ending}"], growth, printed[f"more{ending}"])
        facts |= dict(zip(names, values, strict=True))
    return facts


def text(rows: Sequence[Mapping[str, Any]], tablefmt: str = "plain") -> str:
    """Return a table that compares our totals with those of Table 6, for the encodings in Table 6."""
    head = ["encoding", "options", *(f"{name}{ending}" for ending in VOCABULARIES for name in COLUMNS)]
    lines = [
        [f"{row[name]:,}" if isinstance(row[name], int) else row[name] for name in head] for row in rows if row["total"]
    ]
    align = ["left", "left", *["right"] * (len(head) - 2)]
    return tabulate(lines, head, tablefmt=tablefmt, disable_numparse=True, colalign=align)
