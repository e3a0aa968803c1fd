"""List the cases of the laws: every encoding with its options, one at a time and together, in both directions.

The cases are derived from the registry and the metadata of the options, so a new encoding needs no change in this file.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_posenc.core import options as opts
from fairseq_posenc.encodings import Composition, PositionEncoding, StackShape, build, get, names, spec_of, specs
from fairseq_posenc.stack import Stack

#: Default width of a head. On a GPU it is that of users' models, because a kernel may not work at each width.
WIDTH = 64 if torch.get_default_device().type == "cuda" else 4
LENGTH_FLAG = "--the-flag-that-sets-the-length"
#: Options that the cases leave out: the laws draw the parameters anew, and `scheduled` and `test_window.py` have cases
#: of their own.
LEFT_OUT = {"init", "init_std", "layers", "window"}


@dataclasses.dataclass(frozen=True)
class Case:
    """Describe an encoding with options, in a stack of one direction.

    Args:
        spec: Value of --pos-enc.
        args: Value of --pos-enc-args.
        causal: Whether the stack is a decoder.
        cls: Class of an encoding that is not in the registry and gets the name `spec`.
        composition: Class of the composition, which may be deliberately broken.
    """

    spec: str
    args: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    causal: bool = False
    cls: type[PositionEncoding] | None = None
    composition: type[Composition] = Composition

    def __str__(self) -> str:
        words = [self.spec, *(f"{key}={value}" for key, value in self.args.items())]
        return "-".join([*words, "causal" if self.causal else "bidirectional"])

    def shape(self, *, layers: int = 2, heads: int = 2, head_dim: int = WIDTH, max_length: int = 16) -> StackShape:
        """Return the shape of a small stack."""
        return StackShape(
            layers, heads, heads * head_dim, max_length,
            causal=self.causal, length_flag=LENGTH_FLAG, has_cls=not self.causal,
        )  # fmt: skip

    def encoding(self, shape: StackShape) -> Composition:
        """Build the encoding for a stack."""
        if self.cls is None:
            return build(self.spec, dict(self.args), shape)
        options = opts.fill(self.cls.Options, self.args)
        return self.composition([(self.spec, self.cls(options, shape))], shape)

    def stack(self, shape: StackShape, **kwargs: Any) -> Stack:
        """Return a stack with the encoding in float64, always with the same weights."""
        with torch.random.fork_rng():
            torch.manual_seed(0)
            stack = Stack("none", None, dataclasses.replace(shape, drawn=None), ffn=2 * shape.dim, **kwargs)
            stack.pos = self.encoding(shape)
        for index, block in enumerate(stack.layers, start=1):
            block.self_attn.use(stack.pos, index)
        return stack.double()

    @property
    def name(self) -> str:
        """Return the name of the last encoding, whose options the case sets."""
        return self.spec.split("+")[-1]

    @functools.cached_property
    def capabilities(self) -> Any:
        """Return the capabilities of the built encoding."""
        return self.encoding(self.shape(layers=3)).capabilities

    @functools.cached_property
    def hooks(self) -> set[str]:
        """Return the hooks of all members."""
        return {hook for member in self.encoding(self.shape(layers=3)).members.values() for hook in member.hooks}


def tables(name: str) -> dict[str, Any]:
    """Return the tables in a .toml file of this folder."""
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text("utf-8"))


def uses_own(case: Case) -> bool:
    """Return whether an encoding can use positions that the caller gives: it declares this, and it uses positions."""
    members = case.encoding(case.shape()).members.values()
    return bool(case.capabilities.any_positions) and any(member.uses_positions for member in members)


def works(name: str, args: Mapping[str, Any], causal: bool) -> bool:
    """Return whether these options are accepted."""
    return _works(name, tuple(args.items()), causal)


@functools.cache  # every file calls this for all options and pairs of them
def _works(name: str, args: tuple[tuple[str, Any], ...], causal: bool) -> bool:
    case = Case(name, dict(args), causal)
    try:
        case.encoding(case.shape())
    except ValueError:
        return False
    return True


def directions(name: str) -> list[bool]:
    """Return the values of `causal` for which an encoding works. `test_undeclared` tests the refusals."""
    spec = spec_of(name) if name in names() else name
    return [causal for causal in (False, True) if works(spec, {}, causal)]


def in_one_direction(case: Case) -> bool:
    """Return whether a case is in an encoder, or in a decoder if its encoding works in decoders only."""
    return case.causal == (False not in directions(case.spec))


def in_last_direction(case: Case) -> bool:
    """Return whether a case is in a decoder, or in an encoder if its encoding works in encoders only."""
    return case.causal == directions(case.spec)[-1]


def options_once(case: Case) -> bool:
    """Return whether a case has no options, or is in a decoder, or in an encoder because decoders refuse its options.

    This is for laws about parameters, which do not depend on the direction of the stack.
    """
    return not case.args or case.causal or not works(case.spec, case.args, causal=True)


def alternatives(field: dataclasses.Field[Any]) -> list[Any]:
    """Return values of an option other than its default."""
    choices, example = field.metadata["choices"], field.metadata["example"]
    if choices:
        return [choice for choice in choices if choice != field.default]
    if example is None and isinstance(field.default, bool):
        return [not field.default]
    assert example is not None, f"{field.name} needs an example, with which it can be tested"
    return [example]


def variants(spec: str, causal: bool) -> list[dict[str, Any]]:
    """Return the default options, each option changed with as few others as it needs, and all changed together."""
    options = get(spec.split("+")[-1]).Options
    fields = [field for field in dataclasses.fields(options) if field.name not in LEFT_OUT]
    single = [{field.name: value} for field in fields for value in alternatives(field)]
    together = {field.name: alternatives(field)[0] for field in fields}
    choices: list[dict[str, Any]] = [{}]
    for args in [*single, together]:
        groups = itertools.chain.from_iterable(itertools.combinations(single, others) for others in range(3))
        tries = ({**{name: value for one in group for name, value in one.items()}, **args} for group in groups)
        accepted = next((one for one in tries if works(spec, one, causal)), None)
        if accepted is not None and accepted not in choices:
            choices.append(accepted)
    return choices


def every(where: Callable[[Case], bool] = lambda case: True) -> list[Case]:
    """Return all cases of the registry for which `where` holds."""
    return [case for case in _all() if where(case)]


@functools.cache
def _all() -> list[Case]:
    pairs = [(spec, causal) for spec in specs() for causal in directions(spec)]
    return [Case(spec, args, causal) for spec, causal in pairs for args in variants(spec, causal)]


def in_turn(where: Callable[[Case], bool] = lambda case: True, now: Callable[[Case], bool] = options_once) -> list[Any]:
    """Return the cases for which `where` holds, as parameters of a test.

    `make test` runs the cases for which `now` holds. The others are marked `long`, so that `make test-long` runs them.
    """
    return [pytest.param(case, id=str(case), marks=[] if now(case) else [pytest.mark.long]) for case in every(where)]


def without_options(case: Case) -> bool:
    """Return whether all options of a case have their defaults."""
    return not case.args


def first_of_kind(case: Case) -> bool:
    """Return whether a case is the first with its hooks that works in one direction, with default options.

    This is for laws about what others do with hooks, such as compilers and compositions.
    """
    return case in _first_of_kinds()


@functools.cache
def _first_of_kinds() -> list[Case]:
    kinds = {frozenset(case.hooks): case for case in reversed(defaults(in_one_direction))}
    return list(kinds.values())


def claims(case: Case) -> bool:
    """Return whether all options of a case have their defaults, or change what the encoding declares.

    This is for laws about what an encoding declares.
    """
    return without_options(case) or case.capabilities != dataclasses.replace(case, args={}).capabilities


def defaults(where: Callable[[Case], bool] = lambda case: True) -> list[Case]:
    """Return every encoding with its default options, for which `where` holds."""
    return every(lambda case: not case.args and where(case))


def scheduled(layers: str) -> list[Case]:
    """Return every encoding that acts in layers, active only in `layers`, in the last direction in which it works.

    Encodings with the option `share` have two cases: layers share a table, and each layer has its own. Encodings that
    cannot be used alone have none.
    """
    alone = defaults(lambda case: "+" not in case.spec)
    last = [case for case in alone if case.causal == directions(case.spec)[-1] and case.hooks - {"embed"}]
    kinds = [
        (case, [{}, {"share": "none"}] if "share" in opts.names(get(case.spec).Options) else [{}]) for case in last
    ]
    return [Case(case.spec, {**args, "layers": layers}, case.causal) for case, many in kinds for args in many]
