"""What recipes that fine-tune share: the pretrained models that a user names, without torch."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import places as files
from .encodings import Encoding, parse
from .stages import read_json
from .values import Refused

LAST = "checkpoint_last.pt"  # of recipes/pretrain_mlm
IMPORTED = "checkpoint.pt"  # of import-hf
RUN = "comparison.json"  # of a run of recipes/pretrain_mlm that is done
#: checkpoints of fairseq's and of import-hf, of which each folder has those of one training; its releases' model.pt
PROGRAMS = re.compile(r"checkpoint([._\d].*)?\.pt|model\.pt")
LONGEST = 100  # letters of `in_a_name`


@dataclass(frozen=True)
class Model:
    """A pretrained model. label: its encoding, where its place tells it, otherwise its file or folder. path: a
    checkpoint of fairseq's, or a folder of Hugging Face's."""

    label: str
    path: Path

    @property
    def slug(self) -> str:
        """Its name in paths and stages."""
        return re.sub(r"[\[,]", ".", self.label).replace("]", "")


def models(places: Sequence[str]) -> list[Model]:
    """Those of --checkpoint.

    Args:
        places: checkpoints; runs of recipes/pretrain_mlm, with all their encodings; folders of import-hf or of Hugging
            Face's. One that is not there yet stands for itself: commands can be printed before there is a model.
    Raises:
        Refused: two models of one name.
    """
    found = [model for place in places for model in _models(Path(place).resolve())]
    for number, model in enumerate(found):
        if model.slug in [other.slug for other in found[:number]]:
            raise Refused(f"--checkpoint names two models that are called {model.label}: run the recipe for each")
    return found


def _models(place: Path) -> list[Model]:
    if (place / RUN).is_file():
        labels = [str(row["encoding"]) for row in read_json(place / RUN)]
        return [Model(label, place / "checkpoints" / parse(label).slug / LAST) for label in labels]
    if (place / IMPORTED).is_file():
        return [Model(place.name, place / IMPORTED)]
    if place.is_dir() and not (place / "config.json").is_file():
        checkpoints = sorted(place.glob(f"checkpoints/*/{LAST}"))
        if not checkpoints:
            raise Refused(f"--checkpoint {place}: no run of recipes/pretrain_mlm, and no model's folder")
        return [Model(path.parent.name, path) for path in checkpoints]
    return [Model(called(place).name, place)]


def refuse_missing(found: Sequence[Model], tokenizer: str) -> None:
    """What --checkpoint and --tokenizer-path name.

    Args:
        found: models that no stage makes. tokenizer: a path, or nothing.
    """
    files.refuse_missing("checkpoint", *(model.path for model in found))
    files.refuse_missing("tokenizer-path", tokenizer)


def called(place: Path) -> Path:
    """What a model is called after: the folder of a checkpoint that is called as programs call theirs; otherwise the
    file, without its end."""
    if place.suffix != ".pt":
        return place
    return place.parent if PROGRAMS.fullmatch(place.name) else place.with_suffix("")


def notes(pretraining: str) -> list[str]:
    """What a user should know of a preset's models.

    Args:
        pretraining: the command that makes them, of presets that want some of their own.
    """
    return [f"Models of this preset: {pretraining}"] if pretraining else []


def of_encodings(found: Sequence[Model], wanted: Sequence[Encoding], pretraining: str) -> list[Model]:
    """The models of these encodings, in their order.

    Args:
        pretraining: the command that makes them.
    Raises:
        Refused: one that is not there.
    """
    by_slug = {model.slug: model for model in found}
    for encoding in wanted:
        if encoding.slug not in by_slug:
            named = ", ".join(model.label for model in found) or "none"
            raise Refused(
                f"--checkpoint has no {encoding.label} (there are: {named}); each is a pretraining of its own: "
                f"{pretraining or 'recipes/pretrain_mlm'}"
            )
    return [Model(encoding.label, by_slug[encoding.slug].path) for encoding in wanted]


def in_a_name(places: Sequence[str]) -> str:
    """Those of --checkpoint in the name of a folder: runs, of a run's checkpoint its encoding too, and folders."""
    found = list(dict.fromkeys(_name(Path(place).resolve()) for place in places))
    whole = re.sub(r"[^\w.=+-]", "-", ".".join(found))
    if len(whole) <= LONGEST:
        return whole
    return f"{whole[: LONGEST // 2]}.{hashlib.sha256(whole.encode()).hexdigest()[:8]}"


def _name(place: Path) -> str:
    if place.suffix != ".pt":
        return place.name
    folder = called(place)  # RUN/checkpoints/ENCODING, of import-hf, or a file of its own name
    return f"{folder.parents[1].name}.{folder.name}" if folder.parent.name == "checkpoints" else folder.name


def cuts_text(model: Path) -> list[Path]:
    """The dictionary and the tokenizer that lie beside a checkpoint, or in its run of recipes/pretrain_mlm; those of a
    folder are a part of it."""
    if model.suffix != ".pt":
        return []
    data = [run / "data" for run in model.parents[2:3]]
    found = [place / name for place in (model.parent, *data) for name in ("dict.txt", "tokenizer")]
    found += [path for place in data for path in sorted(place.glob("shard*/dict.txt"))[:1]]
    return [path for path in found if path.exists()]
