"""Write the section of docs/cost.md about GPUs: the ratios that `gpu-check` measured, next to the targets."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tabulate import tabulate

from ...core.quiet import warnings_only
from ...core.terms import OfDistance
from ..gpu_check.page import UNMEASURED
from ..listing import on_meta
from ..paths_memory import MEMORY
from ..paths_page import HALF, LENGTH, chosen, shape_of, subjects, title_of

#: Targets in training: for terms that depend on the distance only, for products with few vectors, and for encodings
#: without `clip`, of which no path is known to be best.
DISTANCES, CLIPPED, UNCLIPPED = 1.10, 1.15, {"shaw": 1.3, "m4": 1.4}
#: Target of decoding, for all encodings.
DECODING = 1.1

UNMEASURED_TEXT = "These costs were not measured on a GPU, because no GPU was available."
TEXT = f"""\
## On a GPU

{{state}}
On a GPU, FlexAttention adds the terms of most encodings to the logits inside its kernel, in float32.
[Attention paths](attention-paths.md) shows which encodings can use FlexAttention, and how much memory each path keeps.
Encodings that add nothing to the logits use torch's fused attention. These commands measure the costs and write them
into the table:

    python -m fairseq_posenc gpu-check --output results/gpu
    python -m fairseq_posenc cost results/*/bench.json --gpu results/gpu/gpu.json --output docs/cost.md

The table applies to sequences of {LENGTH} tokens in bfloat16, on the attention path that `--pos-enc-path auto` chooses.
The columns *time* and *memory* show the time and the peak memory of a layer of width 768 in training. The column
*decoding* shows the time for one token. All numbers are relative to the same layer without positions. `!` marks a
number above its target. The file `results/gpu/gpu.md` also contains the results for other lengths, for other paths, for
inference and for layers of other packages. `bench --device cuda` makes the measurements of the tables above on a GPU,
for base layers.
"""


def section(results: Mapping[str, Any] | None) -> str:
    """Return the section about GPUs. Without `results`, the cells of its table say that nothing was measured."""
    rows = [] if results is None else [row for row in results["rows"] if row["part"] == "cost" and "ratio" in row]
    state = UNMEASURED_TEXT if results is None else f"These costs were measured on {_machine(results['setting'])}."
    with warnings_only("fairseq_posenc"):
        lines = list(_lines(rows))
    head = ["encoding", "path", "time", "target", "memory", "target", "decoding", "target"]
    table = tabulate(lines, head, tablefmt="github", disable_numparse=True)
    return f"{TEXT.format(state=state)}\n{table}"


def refreshed(page: str) -> str:
    """Return the text of docs/cost.md with the present rows in the section about GPUs, unless a GPU was measured."""
    before, _, rest = page.partition("## On a GPU\n")
    old, following, after = rest.partition("\n\n## ")
    return f"{before}{section(None)}{following}{after}" if UNMEASURED_TEXT in old else page


def read(path: Path) -> dict[str, Any]:
    """Return the content of gpu.json.

    Raises:
        SystemExit: The file cannot be read, is no result of gpu-check, or was not measured on a GPU.
    """
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        setting, _ = content["setting"], content["rows"]
        on_a_gpu = not setting["device"].startswith("cpu")
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise SystemExit(f"cost: {path}: {error!r}. Give the gpu.json that gpu-check --output wrote.") from error
    if not on_a_gpu:
        raise SystemExit(f"cost: {path} was measured on a CPU. Run gpu-check on a GPU.")
    return content


def _machine(setting: Mapping[str, Any]) -> str:
    return ", ".join([setting["device"], *(f"{name} {setting[name]}" for name in ("torch", "python"))])


def _lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    for name, options in subjects():
        path, time = _path_and_target(name, options)
        own = {row["mode"]: row for row in rows if _is(row, name, options)}
        decodes = _decodes(name, options)
        cells = [
            _cell(own.get("train"), "ratio", time),
            _cell(own.get("train"), "memory", MEMORY if path == "flex" else None),
            _cell(own.get("decode"), "ratio", DECODING) if decodes else ["-", ""],
        ]
        yield [title_of(name, options), path, *cells[0], *cells[1], *cells[2]]


def _is(row: Mapping[str, Any], name: str, options: str) -> bool:
    return (row["encoding"], row["options"], row["path"], row["length"]) == (name, options, "auto", LENGTH)


def _cell(row: Mapping[str, Any] | None, field: str, target: float | None) -> list[str]:
    """Return a measured ratio and its target."""
    written = "" if target is None else f"{target:.2f}"
    if row is None or row[field] is None:
        return [UNMEASURED, written]
    missed = " !" if target is not None and row[field] > target else ""
    return [f"{row[field]:.2f}{missed}", written]


def _path_and_target(name: str, options: str) -> tuple[str, float | None]:
    """Return the path that `auto` takes, and the target of its time in training; None if there is no target."""
    choice = chosen(name, options, HALF)
    if choice.terms is None:
        return choice.path, None if options else UNCLIPPED.get(name)
    terms = (*choice.terms.factors, *choice.terms.added)
    if all(isinstance(term, OfDistance) for term in terms):
        return choice.path, DISTANCES
    return choice.path, CLIPPED if 0 < choice.terms.width < LENGTH else None


def _decodes(name: str, options: str) -> bool:
    built = on_meta(name, options, shape_of(causal=True))
    return built is not None and not any("compress" in member.hooks for member in built.members.values())
