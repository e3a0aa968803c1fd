"""Find the files of the questions and of the encoder, and build the options that name the questions."""

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
#: Number of questions in the published files from which the paper's models learn and on which they are scored.
PUBLISHED = {SQUAD: {"train": 87_599, "valid": 10_570}, CMRC: {"train": 10_142, "valid": 3_219}}
QUESTIONS = ("*.json", "*.json.gz", "*.txt", "*.txt.gz")
#: Patterns of the files in a Hugging Face folder: PIECES are settings and vocabulary, ENCODER includes the weights.
PIECES = ("*.json", "*.txt", "*.model")
ENCODER = (*PIECES, "*.safetensors", "*.bin")


def named(settings: Settings) -> list[str]:
    """Return the options of prepare_questions.py that name the downloaded questions or the user's questions."""
    if not settings.own:
        files = FETCHED[settings.dataset]
        return [word for split, name in files.items() for word in (f"--{split}", f"{settings.raw}/{name}")]
    place = Path(settings.dataset).resolve()
    if not settings.train_set:
        return ["--text", str(place)]
    sets = {name.removesuffix("_set"): getattr(settings, name) for name in SETS if getattr(settings, name)}
    return [word for split, name in sets.items() for word in (f"--{split}", str(place / name))]


def unplaced(settings: Settings, command: list[str]) -> tuple[str, ...]:
    """Return the command with placeholders for paths, so that a stage still counts as done if its files move."""
    paths = {"DATASET": str(Path(settings.dataset).resolve()) if settings.own else "", "ENCODER": encoder(settings)}
    for name, place in paths.items():
        if place:
            command = [
                name + word[len(place) :] if word == place or word.startswith(f"{place}/") else word for word in command
            ]
    return tuple(command)


def files(settings: Settings) -> tuple[Path, ...]:
    """Return the user's files with questions that exist; the stage that reads the files reports missing files."""
    return existing(Path(settings.dataset).resolve(), QUESTIONS) if settings.own else ()


def encoder(settings: Settings) -> str:
    """Return the folder of the pretrained encoder, or an empty text if the encoder is trained from scratch."""
    return "" if settings.scratch else str(Path(settings.encoder).resolve())


def encoder_files(settings: Settings, patterns: tuple[str, ...] = ENCODER) -> tuple[Path, ...]:
    """Return the existing files of the pretrained encoder that match the patterns."""
    return () if settings.scratch else existing(Path(encoder(settings)), patterns)


def existing(place: Path, patterns: tuple[str, ...]) -> tuple[Path, ...]:
    """Return the file itself if `place` is a file, otherwise the files in the folder that match the patterns."""
    if place.is_file():
        return (place,)
    return tuple(sorted(path for pattern in patterns for path in place.glob(pattern)))
