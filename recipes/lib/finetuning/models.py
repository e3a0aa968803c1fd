"""Find the pretrained models that a user names with --checkpoint.

The module does not import torch, so that `--help` works without it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from recipes.lib.encodings import Encoding, parse
from recipes.lib.recipe import Row
from recipes.lib.stages import read_json
from recipes.lib.values import Refused

LAST = "checkpoint_last.pt"  # the final checkpoint of recipes/pretrain_mlm
IMPORTED = "checkpoint.pt"  # the file that import-hf writes
RUN = "comparison.json"  # a finished run of recipes/pretrain_mlm contains this file
#: File names chosen by a program: by fairseq, by import-hf, or model.pt in fairseq's releases.
PROGRAMS = re.compile(r"checkpoint([._\d].*)?\.pt|model\.pt")
LONGEST_NAME = 100  # characters


@dataclass(frozen=True)
class Model:
    """Name a pretrained model.

    Attributes:
        label: Name of the encoding if the path contains it, otherwise the name of the file or folder.
        path: A fairseq checkpoint or a Hugging Face folder.
    """

    label: str
    path: Path

    @property
    def slug(self) -> str:
        """Return the name that the model has in paths and stage names."""
        return re.sub(r"[\[,]", ".", self.label).replace("]", "")


def models(places: Sequence[str]) -> list[Model]:
    """Return the models that --checkpoint names.

    Args:
        places: Paths of checkpoints, of import-hf or Hugging Face folders, or of runs of recipes/pretrain_mlm. A run
            contains one model for each training run (an encoding and a seed) that did not diverge. A path that does not
            exist yet counts as one model, so that --dry-run works before pretraining.
    Raises:
        Refused: Two models have the same name.
    """
    named = [model for place in places for model in _models_of(Path(place).resolve())]
    for number, model in enumerate(named):
        if model.slug in [other.slug for other in named[:number]]:
            problem = f"another model of --checkpoint also has the name {model.label}"
            raise Refused(f"--checkpoint {model.path}: {problem}. Run the recipe once for each model.")
    return named


def _models_of(place: Path) -> list[Model]:
    if (place / RUN).is_file():
        return [model for row in read_json(place / RUN) for model in _models_of_row(place, row)]
    if (place / IMPORTED).is_file():
        return [Model(place.name, place / IMPORTED)]
    if place.is_dir() and not (place / "config.json").is_file():
        checkpoints = sorted(place.glob(f"checkpoints/*/{LAST}"))
        if not checkpoints:
            problem = "the folder is neither a run of recipes/pretrain_mlm nor a model"
            raise Refused(f"--checkpoint {place}: {problem}. Name a checkpoint or another folder.")
        return [Model(path.parent.name, path) for path in checkpoints]
    return [Model(_named_after(place).name, place)]


def _models_of_row(run: Path, row: Row) -> list[Model]:
    """Return the models of an encoding, one for each seed. Labels contain seeds that differ from the run's --seed."""
    label = str(row["encoding"])
    slug = parse(label).slug
    checkpoints = row.get("checkpoints", [slug])
    return [Model(label + name.removeprefix(slug), run / "checkpoints" / name / LAST) for name in checkpoints]


def _named_after(place: Path) -> Path:
    """Return the path whose last part names the model.

    A model is named after its file, or after its folder if a program chose the file name, such as checkpoint_last.pt.
    """
    if place.suffix != ".pt":
        return place
    return place.parent if PROGRAMS.fullmatch(place.name) else place.with_suffix("")


def with_encodings(named: Sequence[Model], encodings: Sequence[Encoding], pretraining: str) -> list[Model]:
    """Return the models that have these encodings, in the order of the encodings.

    Args:
        named: Models that --checkpoint names.
        encodings: Encodings that --pos-enc names, one for each returned model.
        pretraining: Command that pretrains the models; the error message contains it.
    Raises:
        Refused: For one of the encodings, there is no model.
    """
    by_slug = {model.slug: model for model in named}
    for encoding in encodings:
        if encoding.slug not in by_slug:
            labels = ", ".join(model.label for model in named) or "none"
            raise Refused(
                f"--checkpoint: no model has the encoding {encoding.label} (models: {labels}). Pretrain a model with "
                f"this encoding: {pretraining or 'recipes/pretrain_mlm'}"
            )
    return [Model(encoding.label, by_slug[encoding.slug].path) for encoding in encodings]


def in_a_name(places: Sequence[str]) -> str:
    """Return a short text that stands for the values of --checkpoint in the name of the output folder."""
    names = dict.fromkeys(_name(Path(place).resolve()) for place in places)
    whole = re.sub(r"[^\w.=+-]", "-", ".".join(names))
    if len(whole) <= LONGEST_NAME:
        return whole
    return f"{whole[: LONGEST_NAME // 2]}.{hashlib.sha256(whole.encode()).hexdigest()[:8]}"


def _name(place: Path) -> str:
    if place.suffix != ".pt":
        return place.name
    folder = _named_after(place)  # RUN/checkpoints/ENCODING, a folder of import-hf, or the user's file without .pt
    return f"{folder.parents[1].name}.{folder.name}" if folder.parent.name == "checkpoints" else folder.name


def tokenizer_files(model: Path) -> list[Path]:
    """Return the dictionary and the tokenizer of a checkpoint, from its folder or from its run of recipes/pretrain_mlm.

    The list is empty for a Hugging Face folder, which contains its tokenizer.
    """
    if model.suffix != ".pt":
        return []
    data = [run / "data" for run in model.parents[2:3]]
    candidates = [place / name for place in (model.parent, *data) for name in ("dict.txt", "tokenizer")]
    candidates += [path for place in data for path in sorted(place.glob("shard*/dict.txt"))[:1]]
    return [path for path in candidates if path.exists()]
