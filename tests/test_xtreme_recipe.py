"""The XTREME recipe: XNLI's numbers, its plan, and the paper's figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipes.finetune_glue.published import paper
from recipes.finetune_glue.tasks import headline
from recipes.finetune_xtreme.__main__ import FINETUNE_XTREME
from recipes.lib.encodings import parse
from recipes.lib.recipe import shown
from recipes.lib.settings import load
from recipes.lib.values import Refused

OUTPUT = Path("/tmp/an output")


def test_xnli_is_scored_in_other_languages() -> None:
    scores = {name: {"accuracy": score} for name, score in (("valid", 90.0), ("valid-de", 50.0), ("valid-zh", 40.0))}
    assert headline("XNLI", scores, "accuracy") == 45.0
    scores |= {name: {"accuracy": score} for name, score in (("test-en", 80.0), ("test-de", 60.0))}
    assert headline("XNLI", scores, "accuracy") == 60.0
    assert headline("MNLI", scores, "accuracy") == 90.0
    assert paper("diet-xtreme", parse("diet-abs[rank=128,share=layer-wise]"), "head") == {"XNLI": 68.5}


@pytest.mark.parametrize("preset", FINETUNE_XTREME.presets())
def test_the_xtreme_recipe_plans_every_stage(preset: str) -> None:
    found = load(FINETUNE_XTREME, preset, given={"checkpoint": "builtin"})
    plan = {stage.name: stage for stage in FINETUNE_XTREME.plan(found, OUTPUT, shown(OUTPUT)).stages()}
    assert "data-bin-scripts/prepare_xtreme.sh" in plan["prepare:XNLI.learned"].command
    trains = [stage for stage in plan.values() if stage.kind == "train"]
    assert len(trains) == (20 if preset == "paper" else 1)
    assert all(stage.command[stage.command.index("--num-classes") + 1] == "3" for stage in trains)
    with pytest.raises(Refused, match="--task: no 'MNLI'"):
        load(FINETUNE_XTREME, preset, given={"checkpoint": "builtin", "task": "MNLI"})
