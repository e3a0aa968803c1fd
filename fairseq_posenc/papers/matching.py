"""Compare the options of an encoding with those of a paper's row.

This file needs nothing but Python, so that recipes load it without torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

#: What options without a default mean in the papers' pretrained models: the rank is the head size (768 / 12), and
#: nothing is clipped, because the clip distance is not below the longest input.
PRETRAINED: Mapping[str, object] = {"rank": 64, "clip": 512}
#: Paper whose tables hold for models with a table per head and for models whose heads share it: its Table 1 counts a
#: table per head, but its authors' code shares them.
EITHER_SHARING = "M1-M4"


def option_values(
    chosen: Mapping[str, Mapping[str, object]],
    options: Callable[[str], Mapping[str, object]],
    unset: Mapping[str, object] | None = None,
) -> dict[str, str]:
    """Return the values of all options, including defaults, keyed by names such as `m4.clip`, in a standard spelling.

    Args:
        chosen: The options that are set, by the names of the combined encodings.
        options: Function that returns the options of an encoding and their defaults, keyed by name.
        unset: Values that the options without a default have in the paper's models.
    """
    values = {
        f"{name.replace('-', '_')}.{option}": (unset or {}).get(option) if default is None else default
        for name in chosen
        for option, default in options(name).items()
    }
    values |= {f"{name.replace('-', '_')}.{key}": value for name, own in chosen.items() for key, value in own.items()}
    return {name: _plain(value) for name, value in values.items()}


def are_those_of(paper: str, printed: Mapping[str, str], ours: Mapping[str, str]) -> bool:
    """Return whether a paper's row holds for our option values.

    All values must be equal, with one exception: the scores that the M1-M4 paper reports for share=head-wise also hold
    for share=none, because the M1-M4 paper and its code differ in this option.

    Args:
        paper: Short name of the paper.
        printed: Option values of the paper's row, from `option_values`.
        ours: Option values of our model, from `option_values`.
    """
    if printed == ours:
        return True
    shared = {
        name: "head_wise" if name.endswith(".share") and value == "none" else value for name, value in ours.items()
    }
    return paper == EITHER_SHARING and printed == shared


def _plain(value: object) -> str:
    """Return a value in its standard spelling: `1` for 1.0, `layer_wise` for layer-wise."""
    text = str(value).lower().replace("-", "_")
    try:
        return f"{float(text):g}"
    except ValueError:
        return text
