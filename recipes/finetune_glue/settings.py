"""Settings of the GLUE recipe; conf/ and recipes/lib/finetuning/protocols/ have the values and their sources."""

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
    task: list[str] = field(metadata=about(f"{', '.join(GLUE)}; several are compared side by side"))
    protocol: str = field(
        metadata=about(
            "m1-m4, m4m or diet, from recipes/lib/finetuning/protocols: what the papers do; diet-xtreme, of XTREME's"
        )
    )
    data: str = field(
        metadata=about(
            "glue (the published archives), your FOLDER with TASK/train.tsv and so on, plain or .gz, or "
            f"{BUILTIN} (small, invented)"
        )
    )

    known = GLUE
    script = "data-bin-scripts/prepare_glue.sh"
    fetched = "glue"
