"""The XTREME recipe, of its sentence pairs; `recipes/finetune_xtreme/run.sh` calls it in the right environment.

XNLI is a task like those of GLUE whose other languages are further development and test sets: stages are that recipe's.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from recipes.finetune_glue.__main__ import FINETUNE_GLUE
from recipes.finetune_glue.plan import make_plan
from recipes.finetune_glue.settings import BUILTIN
from recipes.finetune_glue.settings import Settings as GlueSettings
from recipes.lib.command import main
from recipes.lib.recipe import Recipe, about, compared

DESCRIPTION = """\
Pretrained multilingual masked language models of any position encoding, trained on XNLI's English and scored on the
other languages without having seen any of them (zero-shot), by the DIET paper's protocol."""

LEGEND = """\
Score: the mean accuracy over the languages but English, of the test sets, or of the development sets where the test
sets have no labels; learning rates and checkpoints are chosen in English. Chance is 33.33, and the baseline the
constant that scores best on the training rows, in English. Paper: the DIET paper's mean over XNLI's languages."""


@dataclass(kw_only=True)
class Settings(GlueSettings):
    task: list[str] = field(metadata=about("XNLI"))
    data: str = field(
        metadata=about(
            "xnli (the published archives), your FOLDER with train-en.tsv, dev-de.tsv and so on, plain or .gz, or "
            f"{BUILTIN} (small, invented)"
        )
    )
    known: ClassVar[tuple[str, ...]] = ("XNLI",)
    script: ClassVar[str] = "data-bin-scripts/prepare_xtreme.sh"
    fetched: ClassVar[str] = "xnli"


def remarks(settings: GlueSettings, output: Path) -> list[str]:
    """Accuracies by language."""
    told = [LEGEND]
    for row in compared(settings, output):
        found: Any = row["scores"]
        parts = (f"{split.replace('valid', 'dev')} {one['accuracy']:.2f}" for split, one in found.items())
        told.append(f"{row['model']}: {', '.join(parts)}.")
    return told


def default_output(settings: GlueSettings) -> str:
    named = ".".join(dict.fromkeys(Path(place).resolve().name.removesuffix(".pt") for place in settings.checkpoint))
    return f"finetune_xtreme/{Path(settings.data).resolve().name}.{named}.{settings.protocol}.{settings.seed}"


FINETUNE_XTREME: Recipe[GlueSettings] = replace(
    FINETUNE_GLUE,
    name="finetune_xtreme",
    description=DESCRIPTION,
    settings=Settings,
    conf=Path(__file__).parent / "conf",
    plan=make_plan,
    remarks=remarks,
    default_output=default_output,
    examples=(
        "--preset smoke --output /tmp/smoke",
        "--preset small --checkpoint results/pretrain_mlm/mine --data xtreme/ --train-rows 1500",
        "--preset paper --checkpoint results/pretrain_mlm/wiki100 --dry-run",
    ),
    files=("predictions/", "checkpoints/"),
)

if __name__ == "__main__":
    sys.exit(main(FINETUNE_XTREME, sys.argv[1:]))
