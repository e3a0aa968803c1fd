"""Write results.json, results.md and bleu.png from the results of the stages."""

from __future__ import annotations

import argparse
import json
import platform
from importlib.metadata import version
from pathlib import Path

from tabulate import tabulate

from fairseq_posenc.analysis import scores, style
from fairseq_posenc.analysis.results import score
from recipes.lib import records
from recipes.lib.encodings import parse
from recipes.lib.package import write_whole
from recipes.lib.recipe import Row

from .plan import SOURCE, TARGET

TEMPLATE = Path(__file__).with_name("template.md")
KEYS = ("encoding", "bleu", "signature", "parameters", "speed_ratio", "command", "commit")
NOT_RECORDED = "unknown"  # value for stages that were run by hand
PACKAGES = ("torch", "fairseq-fixed", "sacrebleu", "sentencepiece", "numpy")


def collect(output: Path, encodings: list[str]) -> list[Row]:
    """Return one row of results per encoding, with the highest BLEU first."""
    measured = json.loads((output / "measured.json").read_text(encoding="utf-8"))
    rows = [row(output, name, measured[name]) for name in encodings]
    return sorted(rows, key=lambda row: -row["bleu"])


def row(output: Path, name: str, measured: dict[str, float]) -> Row:
    slug = parse(name).slug
    score = json.loads((output / "scores" / slug).read_text(encoding="utf-8"))
    cost = records.cost(output, f"train:{slug}", f"generate:{slug}")
    return {
        "encoding": name,
        "bleu": round(score["bleu"], 2),
        "signature": score["signature"],
        "parameters": int(measured["parameters_added"]),
        "speed_ratio": round(measured["training_time_ratio"], 3),
        "command": cost["command"],
        "commit": cost["commit"],
    }


def table(rows: list[Row]) -> str:
    """Return the table of results in Markdown."""
    head = ("encoding", "BLEU", "added parameters", "time per step relative to `none`")
    cells = [
        (row["encoding"], f"{row['bleu']:.1f}", f"{row['parameters']:,}", f"{row['speed_ratio']:.2f}") for row in rows
    ]
    align = ("left", "right", "right", "right")
    return tabulate(cells, head, tablefmt="pipe", disable_numparse=True, colalign=align)


def examples(raw: Path, count: int = 2) -> str:
    """Return the first test sentences with a relative clause, and their translations."""
    pairs = zip(_lines(raw / f"test.{SOURCE}"), _lines(raw / f"test.{TARGET}"), strict=True)
    chosen = [pair for pair in pairs if " that " in pair[0]][:count]
    return "\n".join(f"- {source}\n  → {target}" for source, target in chosen)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def write_markdown(output: Path, rows: list[Row], seed: int) -> str:
    """Return the report: the template, filled in with the results."""
    counts = {split: len(_lines(output / "raw" / f"{split}.{SOURCE}")) for split in ("train", "valid", "test")}
    minutes = records.busy_minutes(output)
    return TEMPLATE.read_text(encoding="utf-8").format(
        table=table(rows),
        signature=rows[0]["signature"],
        sizes=", ".join(f"{count:,} {split}" for split, count in counts.items()),
        none=next(row["bleu"] for row in rows if row["encoding"] == "none"),
        examples=examples(output / "raw"),
        seed=seed,
        python=platform.python_version(),
        versions=", ".join(f"{name} {version(name)}" for name in PACKAGES),
        commit=", ".join(sorted({row["commit"] or NOT_RECORDED for row in rows})),
        minutes=NOT_RECORDED if minutes is None else f"{minutes:.1f}",
        commands="\n\n".join(row["command"] or NOT_RECORDED for row in rows),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="Folder of the run.")
    parser.add_argument("--encodings", nargs="+", required=True, metavar="NAME", help="Encodings to report.")
    parser.add_argument("--seed", type=int, required=True, metavar="N", help="Random seed of the run.")
    options = parser.parse_args()
    rows = collect(options.output, options.encodings)
    items = [score({"recipe": "BLEU on the test set"}, row, "bleu")._replace(column="BLEU") for row in rows]
    style.save(scores.draw(items, baseline="none"), scores.rows(items), options.output, "bleu")
    write_whole(options.output / "results.md", write_markdown(options.output, rows, options.seed))
    write_whole(options.output / "results.json", json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
