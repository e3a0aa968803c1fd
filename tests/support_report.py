"""Provide invented runs of recipes for the tests of the page that compares them."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


def row(encoding: str, bleu: float, **more: Any) -> dict[str, Any]:
    """Return a row of a result of the translation recipe."""
    facts = {"direction": "en-de", "encoding": encoding, "BLEU": bleu, "±": 0.9, "chrF": 50.0, "parameters": 65_000_000}
    costs = {"words/s, training": 4321.0, "MB, translation": 512, "time of a step": 1.1, "minutes": 12.5}
    return {**facts, **costs, "command": f"fairseq-train data --pos-enc {encoding}", "commit": "abc123def456", **more}


def write_run(folder: Path, rows: list[dict[str, Any]], losses: dict[str, int] | None = None, **more: Any) -> Path:
    """Write a run with its results.json, a figure, and a log of `losses[name]` updates for each training."""
    (folder / "logs").mkdir(parents=True)
    facts = {"recipe": "translation_wmt18", "command": "recipes/translation_wmt18/run.sh", "commit": "abc123def456"}
    facts |= {"versions": {"python": "3.11.7"}, "seed": 1, "machine": {"cores": 2, "gpus": []}, "settings": {}}
    (folder / "results.json").write_text(json.dumps(facts | {"results": rows} | more), encoding="utf-8")
    (folder / "figure.png").write_bytes(PNG)
    for name, updates in (losses or {}).items():
        (folder / "logs" / f"{name}.train.log").write_text(log(updates), encoding="utf-8")
    return folder


def log(updates: int) -> str:
    """Return a log of fairseq-train with a loss every 10 updates and a validation every 50."""
    lines = []
    for update in range(10, updates + 1, 10):
        loss = {"loss": f"{5 + 30 / update:.3f}", "wps": "4000", "num_updates": str(update)}
        lines.append(f"2026-01-01 | INFO | train_inner | {json.dumps(loss)}")
        if update % 50 == 0:
            valid = {"valid_loss": f"{5.2 + 30 / update:.3f}", "valid_num_updates": str(update)}
            lines.append(f"2026-01-01 | INFO | valid | {json.dumps(valid)}")
    return "\n".join(lines) + "\n"
