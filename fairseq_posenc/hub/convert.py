"""Give a pretrained model another position encoding, and report which weights are copied, dropped or new."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ..compat.checkpoints import CheckpointError
from ..core.syntax import Spec
from ..encodings import Composition
from ..encodings.building import parse
from ..encodings.registry import kind_of
from . import names
from .model import MaskedLM, ModelConfig
from .pretrained import Pretrained

#: Note on m4m. That the model has to learn attention again was measured on a small model.
M4M_FACTS = (
    "m4m multiplies the attention logits by products with its table. Therefore a new table, however it is "
    "initialised, makes the attention weights very different from those of the pretrained model. The papers on m4m "
    "trained such models for 500,000 more steps. To start with outputs close to those of the pretrained model, use "
    "learned+m4, learned+m2, or learned+m4m with gate_offset=1 (a deviation from the papers)."
)
#: Standard deviation of a new m4m table in a pretrained model, instead of D^-0.5 for training from scratch.
M4M_STD = 0.02


Model = TypeVar("Model", bound=nn.Module)
_OWN = ("encoder.", "embed_tokens.", "lm_head.")
_ONE_MODEL = "Use settings and weights of the same model."


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

    An absolute table is kept if `pos_enc` contains `learned`, and BERT's segment vectors if it contains
    `segments-input`. Tables of distances are kept if `pos_enc` contains the method that uses them. Without
    `segments-input`, the vector of the first segment is added to the table of `learned`: in a text with one segment,
    BERT adds this vector to every token. New tables are initialised as in a new model, except for M4M's table, which is
    drawn from N(0, 0.02) unless `args` sets `init` or `init_std`.

    Args:
        source: Model to convert.
        args: Options of the encoding, as for --pos-enc-args.
        max_length: Maximum length n. Default: the maximum length of the source.
        seed: Random seed of the new weights.
    Raises:
        ValueError: The encoding or an option is unknown.
        CheckpointError: The weights of the source do not fit its settings.
    """
    report = Report()
    length = source.config.max_length if max_length is None else max_length
    # The settings omit our start of M4M's table, so that training, which does not set it, has the same settings.
    config = replace(source.config, pos_enc=pos_enc, pos_enc_args=args or None, max_length=length)
    model = initialised(MaskedLM, config, source.config, report, seed)
    state = model.state_dict()
    copy(source.tensors, state, report)
    own = {name: tensor for name, tensor in source.tensors.items() if name.startswith("encoder.pos.")}
    copy_positions({**own, **_foreign(source, model.encoder.pos, report)}, model.encoder.pos, state, report)
    surplus = [name for name in source.tensors if name.startswith(_OWN) and ".pos." not in name and name not in state]
    if surplus:
        raise CheckpointError(f"the source has {surplus[0]}, which does not fit its settings. {_ONE_MODEL}")
    report.dropped |= dict.fromkeys(source.unused, "the model has no such weight")
    return Pretrained(config, state, source.vocabulary), report


def initialised(kind: Callable[[Any], Model], config: Any, source: Any, report: Report, seed: int) -> Model:
    """Return a new model whose encoding replaces the encoding of a pretrained model.

    A new table of M4M is drawn from N(0, 0.02) unless the options of the encoding set `init` or `init_std`.

    Args:
        kind: Class of the model, which takes the settings.
        config: Settings of the model.
        source: Settings of the pretrained model.
        report: Report that gets notes about M4M and about encodings that are active in other layers.
        seed: Random seed.
    """
    chosen, earlier = (parse(each.pos_enc, each.pos_enc_args) for each in (config, source))
    new = [member for member in chosen.names if member not in earlier.names]
    report.notes += _changed_schedules(earlier, chosen)
    for member in (member for member in new if kind_of(member) == "m4m"):
        report.notes += [M4M_FACTS] if M4M_FACTS not in report.notes else []
        if not {"init", "init_std"} & set(chosen.options[member]):
            chosen.options[member]["init_std"] = M4M_STD
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return kind(replace(config, pos_enc_args=chosen.args))


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


def copy(tensors: Mapping[str, Tensor], state: dict[str, Tensor], report: Report) -> None:
    """Copy all weights of a pretrained model to `state`, except those of the position encoding."""
    for name, ours in state.items():
        if ".pos." in name:
            continue
        theirs = tensors.get(name)
        if theirs is None and not name.startswith("lm_head."):
            raise CheckpointError(f"the source has no {name}, which its settings require. {_ONE_MODEL}")
        if theirs is None:
            report.new[name] = "the source has no such weight, so the weight is initialised as in a new model"
        else:
            state[name] = _fitting(name, theirs, ours)
            report.copied.append(name)


def _fitting(name: str, theirs: Tensor, ours: Tensor) -> Tensor:
    if theirs.shape != ours.shape:
        shapes = f"{list(theirs.shape)} in the source, but its settings require {list(ours.shape)}"
        raise CheckpointError(f"{name} has the shape {shapes}. {_ONE_MODEL}")
    return theirs.to(ours.dtype).clone()


def copy_positions(tensors: Mapping[str, Tensor], pos: Composition, state: dict[str, Tensor], report: Report) -> None:
    """Copy the tables of a pretrained model to `state` if the encoding `pos` has them, and report all other tables."""
    known = dict(tensors)
    for name in [name for name in state if ".pos." in name]:
        theirs = known.pop(name, None)
        if theirs is not None and theirs.shape == state[name].shape:
            state[name] = theirs.to(state[name].dtype).clone()
            report.copied.append(name)
        elif theirs is not None and ".pos.learned." in name:
            rows = min(len(theirs), len(state[name]))
            state[name][:rows] = theirs[:rows]
            report.new[name] = f"the first {rows} rows are copied, and the other rows are new"
            if rows == len(state[name]):
                report.new[name] = f"the first {rows} rows are copied"
        else:
            report.new[name] = _rule(state[name])
            if theirs is not None:
                report.dropped[name] = f"its shape is {list(theirs.shape)}, but {list(state[name].shape)} is needed"
    report.dropped |= dict.fromkeys(known, f"--pos-enc {pos.name} has no such table")


def _rule(table: Tensor) -> str:
    std = table.std().item() if table.numel() > 1 else 0.0
    if math.isclose(std, 0.0, abs_tol=1e-12):
        return f"all values are {table.flatten()[0].item():g}, the encoding's initial value"
    return f"drawn from the encoding's initial distribution, with standard deviation {std:.3g}"


def _foreign(source: Pretrained, pos: Composition, report: Report) -> dict[str, Tensor]:
    """Return position weights from Hugging Face or stock fairseq, keyed by their names in `MaskedLM`."""
    tables: dict[str, Tensor] = {}
    tensors, members = source.tensors, pos.members
    table, types = tensors.get(f"{names.POSITIONS}.weight"), tensors.get(f"{names.TYPES}.weight")
    distances = [tensors.get(f"{names.DISTANCES}.{i}.weight") for i in range(source.config.layers)]
    if table is not None:
        if source.config.pos_enc != "learned":
            report.dropped["the absolute table"] = "the source model does not use this table"
        elif "learned" in members:
            tables["encoder.pos.learned.weight"] = table[len(table) - source.config.max_length :]
        else:
            report.dropped["the absolute table"] = f"--pos-enc {pos.name} has none (learned+{pos.name} would keep it)"
    if types is not None:
        _segments(types, tables, members, report)
    if distances[0] is not None:
        owner = source.config.pos_enc
        if owner in members:  # their rows are in the order of i - j
            stacked = torch.stack([rows for rows in distances if rows is not None]).flip(1)
            tables[f"encoder.pos.{owner}.weight"] = stacked[:, None]
        else:
            report.dropped["the tables of distances"] = f"they belong to {owner}, not to {pos.name}"
    return tables


def _segments(types: Tensor, tables: dict[str, Tensor], members: Mapping[str, Any], report: Report) -> None:
    name = "encoder.pos.segments-input.weight"
    if "segments-input" in members:
        # segments-input has two rows at least; a model with one segment never reads the second
        tables[name] = types if len(types) > 1 else torch.cat([types, torch.zeros_like(types)])
    elif "encoder.pos.learned.weight" in tables:
        tables["encoder.pos.learned.weight"] = tables["encoder.pos.learned.weight"] + types[0]
        report.notes.append("the vector of the first segment is added to the absolute table")
        if len(types) > 1:
            report.dropped["the other segment vectors"] = "+segments-input would keep them"
    else:
        report.dropped["the segment vectors"] = "+segments-input would keep them"


def model_of(source: Pretrained) -> MaskedLM:
    """Build a `MaskedLM` with the weights of `source`, in evaluation mode."""
    model = MaskedLM(source.config)
    try:
        model.load_state_dict(dict(source.tensors))
    except RuntimeError as error:
        raise CheckpointError(f"the weights do not fit the settings: {error}. {_ONE_MODEL}") from None
    return model.eval()


def as_it_is(config: ModelConfig, tensors: Mapping[str, Tensor]) -> str:
    """Return the name of the encoding that keeps all position weights of a model from Hugging Face or stock fairseq."""
    types = tensors.get(f"{names.TYPES}.weight")
    has_own_segments = types is not None and (len(types) > 1 or config.pos_enc != "learned")
    return config.pos_enc + ("+segments-input" if has_own_segments else "")
