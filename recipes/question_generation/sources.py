"""Where questions and the encoder come from: the words that name them to prepare_questions.py, and their files."""

from __future__ import annotations

from pathlib import Path

from .settings import CMRC, SETS, SQUAD, Settings

FETCHED = {
    SQUAD: {"train": "squad/train-v1.1.json", "valid": "squad/dev-v1.1.json"},
    CMRC: {
        "train": "cmrc2018/cmrc2018_train.json",
        "valid": "cmrc2018/cmrc2018_dev.json",
        "test": "cmrc2018/cmrc2018_trial.json",
    },
}
QUESTIONS = ("*.json", "*.json.gz", "*.txt", "*.txt.gz")
#: of a Hugging Face folder: settings and vocabulary; with the weights
PIECES = ("*.json", "*.txt", "*.model")
ENCODER = (*PIECES, "*.safetensors", "*.bin")


def named(settings: Settings) -> list[str]:
    """The words for questions that were fetched, or that are the user's own."""
    if not settings.own:
        files = FETCHED[settings.dataset]
        return [word for split, name in files.items() for word in (f"--{split}", f"{settings.raw}/{name}")]
    place = Path(settings.dataset).resolve()
    if not settings.train_set:
        return ["--text", str(place)]
    sets = {name.removesuffix("_set"): getattr(settings, name) for name in SETS if getattr(settings, name)}
    return [word for split, name in sets.items() for word in (f"--{split}", str(place / name))]


def unplaced(settings: Settings, command: list[str]) -> tuple[str, ...]:
    """The user's questions and encoder count, not where they lie."""
    found = {"DATASET": str(Path(settings.dataset).resolve()) if settings.own else "", "ENCODER": encoder(settings)}
    for name, place in found.items():
        if place:
            command = [
                name + word[len(place) :] if word == place or word.startswith(f"{place}/") else word for word in command
            ]
    return tuple(command)


def files(settings: Settings) -> tuple[Path, ...]:
    """Those of the user's questions that are there; what is missing is told by the stage."""
    return there(Path(settings.dataset).resolve(), QUESTIONS) if settings.own else ()


def encoder(settings: Settings) -> str:
    """Its folder; empty where it learns from scratch."""
    return "" if settings.scratch else str(Path(settings.encoder).resolve())


def encoder_files(settings: Settings, patterns: tuple[str, ...] = ENCODER) -> tuple[Path, ...]:
    """The same of the encoder."""
    return () if settings.scratch else there(Path(encoder(settings)), patterns)


def there(place: Path, patterns: tuple[str, ...]) -> tuple[Path, ...]:
    """The file, or those of the folder."""
    if place.is_file():
        return (place,)
    return tuple(sorted(path for pattern in patterns for path in place.glob(pattern)))
