"""Name the families of encodings. The README has a table with one line for each family."""

from __future__ import annotations

from typing import Literal

Family = Literal[
    "no positions",
    "input vectors",
    "relative vectors",
    "biases",
    "rotary",
    "multiplicative",
    "segments",
    "low rank",
    "growing logits",
]

#: What the encodings of each family do, in the order of the README.
FAMILIES: dict[Family, str] = {
    "no positions": "nothing is added; in a decoder, the mask still shows the order",
    "input vectors": "a vector for each position is added to the input of the first layer",
    "relative vectors": "products of queries or keys with vectors for distances are added to the logits",
    "biases": "a number for each pair of tokens is added to the logits",
    "rotary": "queries and keys are rotated by angles that grow with the position",
    "multiplicative": "the product of query and key is multiplied by numbers or vectors for distances",
    "segments": "vectors or numbers for the two sentences of a pair are added to the input or to the logits",
    "low rank": "keys and values are compressed, so that there are fewer keys than tokens",
    "growing logits": "all logits of a query are multiplied by a number that grows with the number of its keys",
}
