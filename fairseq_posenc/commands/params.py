"""`python -m fairseq_posenc params`: count the parameters of each encoding, and show the papers' counts beside them."""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import tomllib
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from tabulate import tabulate

from ..compat.registration import register
from ..core import tables
from ..core.arguments import Parser
from ..core.factors import rank_of
from ..core.words import nearest, visible
from ..encodings import Composition, Cost, PositionEncoding, get, specs
from ..encodings.building import parse
from ..encodings.facts import BASE, at_base_size
from ..encodings.linformer import slots_of
from ..encodings.registry import kind_of
from ..papers.reading import figures
from . import whole_models

SENTENCES = 36  # maximum width of the column of the table that contains sentences
#: Vocabulary size of the architecture for WikiText-103, with </s> and <unk>. Its word parameters are counted, too.
TYPES = {"posenc_transformer_lm_wt103": 267_735}

_FACTOR = re.compile(r"(d_p|[mnhdk])(\^2)?")

#: Time and memory that each hook costs beyond those of the logits, unless the encoding declares its own costs.
_COST = {
    "embed": Cost("nd", "nd"),
    "project_q": Cost("mnd", "mnd"),
    "project_k": Cost("mnd", "mnd"),
    "project_input": Cost("mnhd", "mnh"),
    "compress": Cost("mknd", "mkd"),
    "bias": Cost("mhn^2", "mhn^2"),
    "content_bias": Cost("mn^2d", "mhn^2"),
    "scores": Cost("mn^2d", "mhn^2"),
    "values": Cost("mn^2d", "mnd"),
}


#: Formulas that no paper prints, labels that a paper counts under another label, and notes on counts.
_FACTS: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
FORMULAS, PRINTED_AS, NOTES = (_FACTS[name] for name in ("formulas", "printed_as", "notes"))


def rows(chosen: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return a row for each printed number, and a row for each formula or encoding without a printed number.

    Args:
        chosen: Encodings to count, such as `m4[clip=64]`, instead of all.
    """
    formulas = {row.encoding: row.printed for paper in ("M1-M4", "M4M") for row in figures(paper, column="formula")}
    formulas |= FORMULAS
    if chosen:
        return [_row(label, formulas.get(label), printed) for label in chosen for printed in _printed(label)]
    labels = dict.fromkeys([*formulas, *specs()])
    counted = [_row(label, formulas.get(label), printed) for label in labels for printed in _printed(label)]
    order = {spec.split("+")[-1]: number for number, spec in enumerate(specs())}
    return sorted(counted, key=lambda row: (order[row["encoding"].split("+")[-1]], row["options"] != ""))


def _printed(label: str) -> list[str]:
    """Return the parameter counts that the papers print for an encoding, or an empty text if they print none."""
    encoding = PRINTED_AS.get(label, label)
    papers = ("M1-M4", "M4M", "DIET")
    numbers = [row.printed for paper in papers for row in figures(paper, column="parameters", encoding=encoding)]
    return numbers or [""]


def _row(label: str, formula: str | None, printed: str) -> dict[str, Any]:
    encoding, options = split(label)
    built = at_base_size(encoding, options)
    count = sum(parameter.numel() for parameter in built.parameters())
    is_total = printed.endswith("M")
    note = whole_models.NOTES.get(label, whole_models.NOTE) if is_total else NOTES.get(label, "")
    return {
        "encoding": encoding,
        "options": options,
        "formula": formula or _formula(label),
        "count": count,
        "printed": printed,
        **whole_models.whole(label, count if is_total else None, BASE),
        "time": cost(built, 0),
        "memory": cost(built, 1),
        "printed memory": _printed_memory(label),
        "note": note,
    }


def _formula(label: str) -> str:
    """Return the formula for the number of parameters with default options; an empty text with other options."""
    spec = parse(label)
    counted = spec.names[-1:] if label in specs() else spec.names  # the companion of an encoding is not counted
    return "" if spec.args else " + ".join(get(kind_of(name)).facts.count for name in counted)


def _printed_memory(label: str) -> str:
    """Return the memory complexity that the papers print for an encoding, or an empty text."""
    label = PRINTED_AS.get(label, label)
    printed = [row.printed for paper in ("M1-M4", "M4M") for row in figures(paper, column="complexity", encoding=label)]
    return " or ".join(dict.fromkeys(printed))


def split(label: str) -> tuple[str, str]:
    """Split a label of recipes and tables into its name and options: `m4[clip=32]` gives ('m4', 'clip=32')."""
    spec = parse(label)
    return spec.name, spec.args or ""


def cost(built: Composition, resource: int) -> str:
    """Return the cost term that is largest at base size; `resource` is 0 for time and 1 for memory."""
    terms = [(cost[resource], member) for member in built.members.values() for cost in costs_of(member)]
    values = {term: _value(term, member) for term, member in terms}
    return f"O({max(values, key=lambda term: values[term], default='0')})"


def costs_of(member: PositionEncoding) -> tuple[Cost, ...]:
    """Return the costs that the encoding declares; if it declares none, return the costs of its hooks."""
    return member.costs or tuple(_of_hook(member, hook) for hook in member.hooks)


def _of_hook(member: PositionEncoding, hook: str) -> Cost:
    """Return the cost of a hook of the encoding.

    If the encoding learns only scalars, layers and heads that share a table also share the bias computed from it.
    """
    scalars = [parameter.dim() == 3 for parameter in member.parameters()]  # [L or 1, h or 1, rows]
    if hook in ("bias", "scores") and scalars and all(scalars) and hasattr(member.options, "share"):
        return Cost("mhn^2", f"{tables.axes(member.options.share)}n^2")
    return _COST[hook]


def _value(term: str, member: PositionEncoding) -> float:
    """Return the value of a term such as `mn^2d/h` at base size."""
    slots, rank = (getattr(member.options, name, None) for name in ("slots", "rank"))
    sizes = {"m": member.stack.layers, "h": BASE.heads, "d": BASE.dim, "n": BASE.max_length}
    sizes |= {"k": slots_of(slots, BASE), "d_p": rank_of(rank, BASE)}
    above, below = (
        math.prod(sizes[name] ** (2 if square else 1) for name, square in _FACTOR.findall(part))
        for part in term.partition("/")[::2]
    )
    return 0.0 if term == "0" else above / below


#: Flags of a model, as in training: --pos-enc and its options, for both stacks or for one.
MODEL_FLAGS = tuple(f"--pos-enc{stack}{args}" for stack in ("", "-encoder", "-decoder") for args in ("", "-args"))


def _field(flag: str) -> str:
    """Return the name of the attribute that holds a flag's value, such as `pos_enc` for `--pos-enc`."""
    return flag.removeprefix("--").replace("-", "_")


def of_architecture(arch: str, flags: Mapping[str, str]) -> dict[str, Any]:
    """Count the parameters of a whole model and of its position encodings.

    The dictionary of the model has `TYPES[arch]` symbols, or only special symbols if `TYPES` lacks the architecture.

    Args:
        arch: Name of the architecture.
        flags: Values of the model's flags, keyed by flag; some of `MODEL_FLAGS`.

    Raises:
        ValueError: The architecture is unknown, or the model refuses these flags.
    """
    register()
    from fairseq import models
    from fairseq import options as parsers
    from fairseq.data import Dictionary
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from fairseq.models import ARCH_MODEL_NAME_REGISTRY, ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY

    if arch not in ARCH_MODEL_REGISTRY or not arch.startswith("posenc_"):
        known = [name for name in ARCH_MODEL_REGISTRY if name.startswith("posenc_")]
        raise ValueError(f"--arch {arch}: the plugin has no such architecture{nearest(arch, known)}")
    options = {field.name for field in fields(MODEL_DATACLASS_REGISTRY[ARCH_MODEL_NAME_REGISTRY[arch]])}
    surplus = [flag for flag in flags if _field(flag) not in options]
    if surplus:
        raise ValueError(f"{surplus[0]}: the architecture {arch} does not have this flag. Use --pos-enc instead.")
    words = ["data", "--arch", arch, *(f"{flag}={value}" for flag, value in flags.items())]
    if ARCH_MODEL_NAME_REGISTRY[arch] == "posenc_transformer_lm":
        words += ["--task=language_modeling", f"--tokens-per-sample={BASE.max_length}"]
    config = convert_namespace_to_omegaconf(parsers.parse_args_and_arch(parsers.get_training_parser(), words))
    dictionary, types = Dictionary(), TYPES.get(arch)
    for number in range(len(dictionary), types or 0):
        dictionary.add_symbol(f"type {number}")
    with torch.device("meta"):
        task = Namespace(
            source_dictionary=dictionary, target_dictionary=dictionary, max_positions=lambda: BASE.max_length
        )
        model = models.build_model(config.model, task)
    positions = {name: value.numel() for name, value in model.named_parameters() if ".pos." in name}
    size = sum(value.numel() for value in model.parameters())
    facts = {_field(flag): value for flag, value in flags.items()}
    counted = {"types": types, "model": size} if types else {"model_without_words": size}
    return {"arch": arch, **facts, **counted, "positions": sum(positions.values()), **positions}


def main(argv: Sequence[str]) -> int:
    """Print the counts as text or, with --json, as a JSON list. Return 1 if the architecture or a flag is wrong."""
    parser = Parser(
        prog="python -m fairseq_posenc params",
        description="Count the parameters of each encoding at base size: 12 layers, 12 heads, width 768, n = 512.",
        epilog="examples:\n  %(prog)s --json\n  %(prog)s t5 'm4[clip=64]'\n"
        "  %(prog)s --arch posenc_transformer_small --pos-enc shaw\n"
        "  %(prog)s --arch posenc_transformer_small --pos-enc-encoder linformer --pos-enc-decoder cope",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="Print one JSON list of objects and nothing else.")
    text = "Encodings to count, such as t5 or 'm4[clip=64]'. Default: all, and those that papers count."
    parser.add_argument("names", nargs="*", metavar="NAME", help=text)
    parser.add_argument(
        "--arch", metavar="NAME", help="Instead, count the parameters of a whole model with this architecture."
    )
    model = parser.add_argument_group("flags of the model that --arch names, as in fairseq-train")
    for stack in ("", "-encoder", "-decoder"):
        where = f" of the {stack[1:]}" if stack else " (default: none)"
        model.add_argument(f"--pos-enc{stack}", metavar="NAME", help=f"Position encoding{where}.")
        model.add_argument(f"--pos-enc{stack}-args", metavar="OPTIONS", help="Options of this position encoding.")
    args = parser.parse_args(argv)
    flags = {flag: value for flag in MODEL_FLAGS if (value := getattr(args, _field(flag))) is not None}
    if args.names and args.arch:
        parser.error(f"NAME cannot be used with --arch. Give --pos-enc {args.names[0]} instead.")
    if flags and not args.arch:
        parser.error(
            f"{', '.join(flags)} can only be used with --arch. Add --arch NAME, or give an encoding without a flag, "
            "such as 'shaw[clip=16]', to count it at base size."
        )
    try:
        for label in args.names:
            at_base_size(label, None, "NAME")
        counted = [of_architecture(args.arch, {"--pos-enc": "none", **flags})] if args.arch else rows(args.names)
    except ValueError as error:
        print(f"params: {visible(error)}", file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps(counted, indent=2))
    else:
        print(_text_of_architecture(counted[0]) if args.arch else _text(counted))
    return 0


def _text(rows: list[dict[str, Any]]) -> str:
    """Return a table of all encodings, and a table of whole models; --json has more columns."""
    head = ["encoding", "options", "count", "printed", "note"]
    lines = [[f"{row[name]:,}" if name == "count" else row[name] for name in head] for row in rows]
    align, widths = ("left", "left", "right", "right"), [None, None, None, None, SENTENCES]
    table = tabulate(lines, head, tablefmt="plain", disable_numparse=True, colalign=align, maxcolwidths=widths)
    if not any(row["printed"].endswith("M") for row in rows):
        return table
    title = "Parameters of whole models, compared with Table 6 of the DIET paper:"
    return "\n\n".join([table, title, whole_models.text(rows), whole_models.ROUNDED])


def _text_of_architecture(facts: dict[str, Any]) -> str:
    lines = [[name, f"{value:,}" if isinstance(value, int) else value] for name, value in facts.items()]
    return tabulate(lines, tablefmt="plain", disable_numparse=True)
