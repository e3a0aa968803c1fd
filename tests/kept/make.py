"""Train the tiny language model of this folder, and write it with what it generates.

    PYTHONPATH=.:tests python tests/kept/make.py

It is run only if a release cannot read the files of an older one on purpose: test_kept.py shows that the files of this
version still load and still generate the same text.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch

FOLDER = Path(__file__).resolve().parent
PROMPTS = ["w3 w5 w7", "w20 w19", ""]
LENGTH = 24
MODEL = """--pos-enc rope+t5 --decoder-embed-dim 24 --decoder-ffn-embed-dim 32 --decoder-input-dim 24
    --decoder-output-dim 24""".split()
TRAINING = "--tokens-per-sample 24 --max-update 400 --lr 0.01 --no-epoch-checkpoints --no-save-optimizer-state".split()


def generate(checkpoint: Path) -> list[str]:
    """Return the most probable continuation of each prompt."""
    from fairseq_posenc.__main__ import main

    texts = []
    for prompt in PROMPTS:
        out = io.StringIO()
        words = ["generate-text", "--json", "--checkpoint", str(checkpoint), "--prompt", prompt, "--temperature", "0"]
        with contextlib.redirect_stdout(out):
            assert main([*words, "--length", str(LENGTH)]) == 0
        texts.append(json.loads(out.getvalue())[0]["text"])
    return texts


def without_places(state: dict[str, Any]) -> dict[str, Any]:
    """Return the checkpoint without the folders of this machine."""
    state["cfg"]["common"]["user_dir"] = None
    state["cfg"]["task"]["data"] = state["cfg"]["model"]["data"] = "."
    state["cfg"]["checkpoint"]["save_dir"] = "checkpoints"
    return state


def main() -> None:
    """Write checkpoint.pt, dict.txt and texts.json."""
    from integration import lm

    with tempfile.TemporaryDirectory() as folder:
        data = lm.write_corpus(Path(folder) / "data-bin")
        save = ["--save-dir", Path(folder) / "saved"]
        lm.train(data, *MODEL, *TRAINING, *save, task=lm.STOCK_TASK)
        state = torch.load(Path(folder) / "saved" / "checkpoint_last.pt", weights_only=True)
        torch.save(without_places(state), FOLDER / "checkpoint.pt")
        shutil.copy(data / "dict.txt", FOLDER)
    texts = dict(zip(PROMPTS, generate(FOLDER / "checkpoint.pt"), strict=True))
    facts = {"torch": torch.__version__.partition("+")[0], "texts": texts}
    (FOLDER / "texts.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
