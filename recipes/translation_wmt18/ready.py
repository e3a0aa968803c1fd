"""Find the models of a run that can translate; the run may still be training or measuring other models."""

from __future__ import annotations

from recipes.lib.outputs import RESULT
from recipes.lib.recipe import shown
from recipes.lib.stages import MARKERS, Ledger, read_json
from recipes.lib.values import Refused

from .__main__ import best
from .finished import Finished
from .layout import Variant
from .models import Models
from .plan import Planner


def default_encoding(run: Finished, models: Models) -> str | None:
    """Return the label of the encoding with the highest BLEU so far, or None if no encoding has a score.

    Raises:
        Refused: The run has no finished model.
    """
    if (run.folder / RESULT).is_file():
        return best(run.settings, run.folder, models.direction.label)
    scores = ready(run, models)
    if not scores:
        raise Refused(f"--run {run.folder}: no model of {models.direction.label} is trained and averaged yet.")
    return max(scores, key=lambda variant: scores[variant]).encoding.label


def refuse_unready(run: Finished, models: Models, variant: Variant) -> None:
    """Raise Refused if a model of an unfinished run is not trained and averaged yet."""
    if (run.folder / RESULT).is_file():
        return
    scores = ready(run, models)
    if variant not in scores:
        names = ", ".join(other.slug for other in scores) or "none"
        problem = f"the model {variant.slug} of {models.direction.label} is not trained and averaged yet"
        raise Refused(f"--run {run.folder}: {problem}. These models are ready: {names}.")


def ready(run: Finished, models: Models) -> dict[Variant, float]:
    """Return the averaged models of an unfinished run and their BLEU, which is -1 if a model has no score yet."""
    output = run.folder.resolve()
    ledger = Ledger(output / MARKERS, shown(output))
    stages = {stage.name: stage for stage in Planner(run.settings, output, shown(output)).plan().stages()}
    place, scores = models.place, dict[Variant, float]()
    for variant in run.settings.variants:
        if ledger.is_done(stages[place.stage("average", variant.slug)]):
            scored = ledger.is_done(stages[place.stage("score", variant.slug)])
            bleu = read_json(place.path("scores", f"{variant.slug}.json"))["bleu"] if scored else None
            scores[variant] = -1.0 if bleu is None else bleu
    return scores
