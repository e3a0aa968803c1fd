"""Which stages `--stage` and `--stop-stage` mean."""

from __future__ import annotations

from .package import nearest
from .stages import Ledger, Stage
from .values import Refused


def choose(stages: list[Stage], first: str | None, last: str | None) -> list[Stage]:
    """From `first` to `last`, both included.

    `train` means every training, `train:shaw` one: then the other variants are left out, before and behind.
    """
    kinds = list(dict.fromkeys(stage.kind for stage in stages))
    known = {*kinds, *(stage.name for stage in stages)}
    for name in (first, last):
        if name is not None and name not in known:
            raise Refused(f"no stage '{name}'{nearest(name, known)} (--list)")
    begin = kinds.index(_kind(first)) if first else 0
    end = kinds.index(_kind(last)) if last else len(kinds) - 1
    if begin > end:
        raise Refused(f"--stage {first} comes after --stop-stage {last}; --list shows the order")
    variants = {name.partition(":")[2] for name in (first, last) if name and ":" in name}
    return [
        stage
        for stage in stages
        if begin <= kinds.index(stage.kind) <= end and (not variants or stage.variant in {"", *variants})
    ]


def _kind(name: str) -> str:
    return name.partition(":")[0]


def refuse_open(chosen: list[Stage], ledger: Ledger) -> None:
    """What a chosen stage reads has to be there, or to be made in this run."""
    made_now = {stage.name for stage in chosen}
    for stage in chosen:
        for needed in stage.after:
            if needed.name not in made_now and not ledger.is_done(needed):
                raise Refused(f"{stage.name} needs {needed.name}, which is not done: run --stage {needed.name} first")
