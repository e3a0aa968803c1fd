"""The pretrained models that a user names with --checkpoint. Needs no torch."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from recipes.lib.encodings import Encoding, parse
from recipes.lib.stages import read_json
from recipes.lib.values import Refused

LAST = "checkpoint_last.pt"  # what recipes/pretrain_mlm leaves
IMPORTED = "checkpoint.pt"  # what import-hf leaves
RUN = "comparison.json"  # in a finished run of recipes/pretrain_mlm
#: names that programs give to checkpoints: fairseq's and import-hf's, and model.pt of fairseq's releases
PROGRAMS = re.compile(r"checkpoint([._\d].*)?\.pt|model\.pt")
LONGEST_NAME = 100  # characters


@dataclass(frozen=True)
class Model:
    """A pretrained model.

    Attributes:
        label: its encoding where its place tells it, otherwise the name of its file or folder.
        path: a checkpoint of fairseq, or a folder of Hugging Face.
    """

    label: str
    path: Path

    @property
    def slug(self) -> str:
        """The model's name in paths and stages."""
        return re.sub(r"[\[,]", ".", self.label).replace("]", "")


def models(places: Sequence[str]) -> list[Model]:
    """Return the models of --checkpoint.

    Args:
        places: checkpoints; runs of recipes/pretrain_mlm, which stand for all their encodings; folders of import-hf or
            of Hugging Face. A place that does not exist yet stands for itself, so that commands can be printed before
            there is a model.
    Raises:
        Refused: two models have the same name.
    """
    found = [model for place in places for model in _models_of(Path(place).resolve())]
    for number, model in enumerate(found):
        if model.slug in [other.slug for other in found[:number]]:
            raise Refused(f"--checkpoint names two models that are called {model.label}: run the recipe for each")
    return found


def _models_of(place: Path) -> list[Model]:
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
    return [Model(_named_after(place).name, place)]


def _named_after(place: Path) -> Path:
    """Return what a model is named after: the folder if a program named the checkpoint, otherwise the file's stem."""
    if place.suffix != ".pt":
        return place
    return place.parent if PROGRAMS.fullmatch(place.name) else place.with_suffix("")


def of_encodings(found: Sequence[Model], wanted: Sequence[Encoding], pretraining: str) -> list[Model]:
    """Return the models that have these encodings, in the order of the encodings.

    Args:
        pretraining: the command that makes the models.
    Raises:
        Refused: no model has one of the encodings.
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
    """Return a name for the values of --checkpoint, which becomes a part of a folder's name."""
    names = dict.fromkeys(_name(Path(place).resolve()) for place in places)
    whole = re.sub(r"[^\w.=+-]", "-", ".".join(names))
    if len(whole) <= LONGEST_NAME:
        return whole
    return f"{whole[: LONGEST_NAME // 2]}.{hashlib.sha256(whole.encode()).hexdigest()[:8]}"


def _name(place: Path) -> str:
    if place.suffix != ".pt":
        return place.name
    folder = _named_after(place)  # RUN/checkpoints/ENCODING, a folder of import-hf, or a file with a name of its own
    return f"{folder.parents[1].name}.{folder.name}" if folder.parent.name == "checkpoints" else folder.name


def cuts_text(model: Path) -> list[Path]:
    """Return the dictionary and the tokenizer beside a checkpoint, or in its run of recipes/pretrain_mlm.

    Those of a Hugging Face folder are a part of it and are not listed.
    """
    if model.suffix != ".pt":
        return []
    data = [run / "data" for run in model.parents[2:3]]
    candidates = [place / name for place in (model.parent, *data) for name in ("dict.txt", "tokenizer")]
    candidates += [path for place in data for path in sorted(place.glob("shard*/dict.txt"))[:1]]
    return [path for path in candidates if path.exists()]
