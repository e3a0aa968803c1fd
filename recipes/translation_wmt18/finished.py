"""Read the folder of a finished run, and check whether its rows may be added to the table of another run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from recipes.lib import outputs
from recipes.lib.outputs import RESULT
from recipes.lib.stages import content, read_json
from recipes.lib.values import Refused

from .layout import Direction, Place
from .settings import Settings

#: Settings that may differ within one table. The text is compared by content, and the rows show the other differences.
FREE = {
    *("direction", "source_lang", "target_lang", "seed", "seeds", "pos_enc", "beside", "lengths"),
    *("corpus", "raw", "newstest", "train_set", "valid_set", "test_set", "limit", "bad_lines"),
    *("measure", "measure_seconds", "jobs", "workers", "threads"),
    *("launch", "device", "processes", "nodes", "rendezvous"),
}


@dataclass(frozen=True)
class Finished:
    """Describe a finished run: its folder and its settings."""

    folder: Path
    settings: Settings

    @property
    def labels(self) -> set[tuple[str, str]]:
        """Return the direction and the encoding of each model that this run trained."""
        directions, encodings = self.settings.directions, self.settings.encodings
        return {(direction.label, encoding.label) for direction in directions for encoding in encodings}

    def place(self, direction: Direction) -> Place:
        return Place(self.folder, "", direction.label if len(self.settings.directions) > 1 else "")

    def text(self, pair: frozenset[str]) -> Place | None:
        """Return the folder with the text of two languages, or None if the run did not use these languages."""
        return next((self.place(direction) for direction in self.settings.directions if direction.pair == pair), None)

    def baseline(self, direction: Direction) -> list[str]:
        """Return the hashes of the baseline's translations for a direction, one per seed."""
        place = self.place(direction)
        first = self.settings.variants[:: len(self.settings.encodings)]
        return [content(place.path("translations", f"{variant.slug}.{direction.target}")) for variant in first]


def finished(run: Path, option: str) -> Finished:
    """Read the settings of the finished run in a folder, and return the run.

    Args:
        run: Folder of the run.
        option: Option that named the folder, for errors.
    Raises:
        Refused: The folder has no result, or the result of another recipe.
    """
    path = run / RESULT
    if not path.is_file():
        raise Refused(
            f"{option} {run}: this folder has no {RESULT}. Give the --output folder of a finished run of this recipe."
        )
    facts = read_json(path)
    if facts["recipe"] != "translation_wmt18":
        raise Refused(f"{option} {run}: this is a run of the recipe {facts['recipe']}, not of translation_wmt18.")
    return Finished(run, Settings(**facts["settings"]))


def begun(run: Path, option: str) -> Finished:
    """Read the settings of the run in a folder, which need not be finished, and return the run.

    Raises:
        Refused: The folder has no run of this recipe.
    """
    recipe, settings = run / outputs.RECIPE, run / outputs.SETTINGS
    if (run / RESULT).is_file() or not (recipe.is_file() and settings.is_file()):
        return finished(run, option)
    if (name := recipe.read_text(encoding="utf-8").strip()) != "translation_wmt18":
        raise Refused(f"{option} {run}: this is a run of the recipe {name}, not of translation_wmt18.")
    return Finished(run, Settings(**read_json(settings)))


def refuse_unlike(settings: Settings) -> None:
    """Refuse earlier runs whose settings for training or decoding differ from those of this run.

    Only the settings in `FREE` may differ. Runs that are not finished are skipped here, because a stage reports them.

    Raises:
        Refused: A folder of --beside has settings that differ from those of this run.
    """
    ours = asdict(settings)
    for folder in settings.beside:
        if not (Path(folder) / RESULT).is_file():
            continue
        theirs = asdict(finished(Path(folder), "--beside").settings)
        for name in ours:
            if name not in FREE and ours[name] != theirs[name]:
                problem = _difference(name, theirs[name], ours[name])
                raise Refused(f"--beside {folder}: {problem}. Use the same value in both runs, or leave out --beside.")


def _difference(name: str, theirs: object, ours: object) -> str:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        key = next(key for key in {**theirs, **ours} if theirs.get(key) != ours.get(key))
        name, theirs, ours = f"{name}.{key}", theirs.get(key, "not given"), ours.get(key, "not given")
    return f"the earlier run has --{name.replace('_', '-')} {theirs}, but this run has {ours}"
