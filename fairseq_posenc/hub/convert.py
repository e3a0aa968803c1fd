"""Give a pretrained model another position encoding, and report which weights are copied, dropped or new."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from ..compat.checkpoints import CheckpointError
from ..core.syntax import Spec
from ..encodings import Composition
from ..encodings.building import parse
from ..encodings.registry import kind_of
from .ids import Pretrained
from .model import LanguageModel, ModelConfig
from .names import LEARNED

#: Note on m4m. That the model has to learn attention again was measured on a small model.
M4M_FACTS = (
    "m4m multiplies the attention logits by products with its table. Therefore a new table, however it is "
    "initialised, makes the attention weights very different from those of the pretrained model. The papers on m4m "
    "trained such models for 500,000 more steps. To start with outputs close to those of the pretrained model, use "
    "learned+m4, learned+m2, or learned+m4m with gate_offset=1 (a deviation from the papers)."
)
#: Standard deviation of a new m4m table in a pretrained model, instead of D^-0.5 for training from scratch.
M4M_STD = 0.02
_ONE_MODEL = "Use settings and weights of the same model."
_SEGMENTS = "encoder.pos.segments-input.weight"


@dataclass
class Report:
    """List the copied, dropped and new weights, for users and for report.json."""

    copied: list[str] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)
    new: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return the number of copied weights, then one line for each dropped weight, new weight and note."""
        lines = [f"copied: {len(self.copied)} weights"]
        lines += [f"dropped: {name}: {why}" for name, why in self.dropped.items()]
        lines += [f"new: {name}: {how}" for name, how in self.new.items()]
        return lines + [f"note: {note}" for note in self.notes]


def converted(
    source: Pretrained, pos_enc: str, args: str | None = None, *, max_length: int | None = None, seed: int = 1
) -> tuple[Pretrained, Report]:
    """Return the source model with the encoding `pos_enc`, and a report on its weights.

    The tables of the encodings that both models have are kept. If `pos_enc` has `learned` but not the source's
    `segments-input`, the vector of the first segment is added to the table of `learned`: in a text with one segment,
    BERT adds this vector to every token. New tables are initialised as in a new model, except for M4M's table, which is
    drawn from N(0, 0.02) unless `args` sets `init` or `init_std`.

    Args:
        source: Model to convert.
        args: Options of the encoding, as for --pos-enc-args.
        max_length: Maximum length n. Default: the maximum length of the source.
        seed: Random seed of the new weights.
    Raises:
        ValueError: The encoding or an option is unknown, or does not work in this model.
        CheckpointError: The weights of the source do not fit its settings.
    """
    report = Report(notes=list(source.notes))
    length = source.config.max_length if max_length is None else max_length
    # The settings omit our start of M4M's table, so that training, which does not set it, has the same settings.
    config = replace(source.config, pos_enc=pos_enc, pos_enc_args=args or None, max_length=length)
    model = _initialised(config, source.config, report, seed)
    state, pos = model.state_dict(), model.layers.pos
    tables = {name: tensor for name, tensor in source.tensors.items() if ".pos." in name}
    _copy(source.tensors, state, report)
    _copy_positions(_without_segments(tables, pos, report), pos, state, report)
    report.dropped |= dict.fromkeys(source.unused, "the model has no such weight")
    return replace(source, config=config, tensors=state, unused=()), report


def _initialised(config: ModelConfig, source: ModelConfig, report: Report, seed: int) -> LanguageModel:
    """Return a new model whose encoding replaces the encoding of a pretrained model with the settings `source`."""
    chosen, earlier = (parse(each.pos_enc, each.pos_enc_args) for each in (config, source))
    new = [member for member in chosen.names if member not in earlier.names]
    report.notes += _changed_schedules(earlier, chosen)
    for member in (member for member in new if kind_of(member) == "m4m"):
        report.notes += [M4M_FACTS] if M4M_FACTS not in report.notes else []
        if not {"init", "init_std"} & set(chosen.options[member]):
            chosen.options[member]["init_std"] = M4M_STD
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LanguageModel(replace(config, pos_enc_args=chosen.args))


def _changed_schedules(earlier: Spec, chosen: Spec) -> list[str]:
    """Return a note for each encoding that is active in other layers than in the source."""
    notes = []
    for member in (member for member in chosen.names if member in earlier.names):
        old, new = (spec.options[member].get("layers") for spec in (earlier, chosen))
        if old != new:
            changed = f"layers={new or 'unset'} instead of layers={old or 'unset'}"
            notes.append(
                f"{member} is active in other layers than in the source ({changed}). Tables with the same name and "
                "shape are copied, although they may belong to another layer."
            )
    return notes


def _copy(tensors: Mapping[str, Tensor], state: dict[str, Tensor], report: Report) -> None:
    """Copy all weights of a pretrained model to `state`, except those of the position encoding."""
    for name, ours in state.items():
        if ".pos." in name:
            continue
        theirs = tensors.get(name)
        if theirs is None and not name.startswith("lm_head."):
            raise CheckpointError(f"the source has no {name}, which its settings require. {_ONE_MODEL}")
        if theirs is None:
            report.new[name] = "the source has no such weight, so the weight is initialised as in a new model"
        elif theirs.shape != ours.shape:
            shapes = f"{list(theirs.shape)} in the source, but its settings require {list(ours.shape)}"
            raise CheckpointError(f"{name} has the shape {shapes}. {_ONE_MODEL}")
        else:
            state[name] = theirs.to(ours.dtype).clone()
            report.copied.append(name)
    if surplus := [name for name in tensors if ".pos." not in name and name not in state]:
        raise CheckpointError(f"the source has {surplus[0]}, which does not fit its settings. {_ONE_MODEL}")


def _without_segments(tables: dict[str, Tensor], pos: Composition, report: Report) -> dict[str, Tensor]:
    """Add the vector of the first segment to the absolute table if the new encoding has no segments."""
    types, table = tables.get(_SEGMENTS), tables.get(f"encoder.{LEARNED}")
    if types is None or table is None or "learned" not in pos.members or "segments-input" in pos.members:
        return tables
    report.notes.append("the vector of the first segment is added to the absolute table")
    return {**tables, f"encoder.{LEARNED}": table + types[0]}


def _copy_positions(tables: dict[str, Tensor], pos: Composition, state: dict[str, Tensor], report: Report) -> None:
    """Copy the tables of a pretrained model to `state` if the encoding `pos` has them, and report all other tables."""
    for name in [name for name in state if ".pos." in name]:
        theirs = tables.pop(name, None)
        if theirs is not None and theirs.shape == state[name].shape:
            state[name] = theirs.to(state[name].dtype).clone()
            report.copied.append(name)
        elif theirs is not None and name.endswith(LEARNED) and theirs.shape[1:] == state[name].shape[1:]:
            rows = min(len(theirs), len(state[name]))
            state[name][:rows] = theirs[:rows]
            rest = "" if rows == len(state[name]) else ", and the other rows are new"
            report.new[name] = f"the first {rows} rows are copied{rest}"
        else:
            report.new[name] = _rule(state[name])
            if theirs is not None:
                report.dropped[name] = f"its shape is {list(theirs.shape)}, but {list(state[name].shape)} is needed"
    for name in tables:
        member = name.split(".")[2]
        keep = "" if member in pos.members else f" ({member}+{pos.name} would keep it)"
        report.dropped[name] = f"--pos-enc {pos.name} has no such table{keep}"


def _rule(table: Tensor) -> str:
    std = table.std().item() if table.numel() > 1 else 0.0
    if math.isclose(std, 0.0, abs_tol=1e-12):
        return f"all values are {table.flatten()[0].item():g}, the encoding's initial value"
    return f"drawn from the encoding's initial distribution, with standard deviation {std:.3g}"
