"""Define the settings of the GLUE recipe; their values are in conf/ and recipes/lib/finetuning/protocols/."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from recipes.lib.finetuning.sentences.settings import SentenceSettings
from recipes.lib.finetuning.sentences.tasks import GLUE
from recipes.lib.finetuning.settings import BUILTIN
from recipes.lib.recipe import about

CONF = Path(__file__).parent / "conf"


@dataclass(kw_only=True)
class Settings(SentenceSettings):
    task: list[str] = field(metadata=about(f"Tasks to fine-tune on: {', '.join(GLUE)}."))
    protocol: str = field(
        metadata=about(
            "Fine-tuning protocol of a paper, which sets the hyperparameters: m1-m4, m4m or diet (diet-xtreme is for "
            "XTREME). The values of the protocols are in recipes/lib/finetuning/protocols."
        )
    )
    data: str = field(
        metadata=about(
            f"Source of the data: glue downloads the published archives, {BUILTIN} generates small invented tasks, "
            "and a path names your own folder with files such as TASK/train.tsv, plain or .gz."
        )
    )

    known = GLUE
    script = "data-bin-scripts/prepare_glue.sh"
    fetched = "glue"
