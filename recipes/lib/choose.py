"""Choose the stages from `--stage` to `--stop-stage`."""

from __future__ import annotations

from .package import nearest
from .stages import Ledger, Stage
from .values import Refused


def choose(stages: list[Stage], first: str | None, last: str | None) -> list[Stage]:
    """Return the stages from `first` to `last`, both included.

    `train` means the training of all variants. `train:shaw` means the training of the variant `shaw` only; all stages
    of other variants are left out.

    Raises:
        Refused: A named stage does not exist, or `first` comes after `last`.
    """
    kinds = list(dict.fromkeys(stage.kind for stage in stages))
    known = {*kinds, *(stage.name for stage in stages)}
    for name in (first, last):
        if name is not None and name not in known:
            option = "--stage" if name == first else "--stop-stage"
            raise Refused(f"{option} {name}: there is no stage '{name}'{nearest(name, known)}")
    begin = kinds.index(_kind(first)) if first else 0
    end = kinds.index(_kind(last)) if last else len(kinds) - 1
    if begin > end:
        raise Refused(f"--stage {first} comes after --stop-stage {last}. Show the order of the stages with --list.")
    variants = {name.partition(":")[2] for name in (first, last) if name and ":" in name}
    return [
        stage
        for stage in stages
        if begin <= kinds.index(stage.kind) <= end and (not variants or stage.variant in {"", *variants})
    ]


def _kind(name: str) -> str:
    return name.partition(":")[0]


def refuse_open(chosen: list[Stage], ledger: Ledger) -> None:
    """Raise Refused if a chosen stage needs another stage that is neither done nor chosen."""
    names = {stage.name for stage in chosen}
    for stage in chosen:
        for needed in stage.after:
            if needed.name not in names and not ledger.is_done(needed):
                problem = f"the stage {stage.name} needs the stage {needed.name}, which is not done"
                raise Refused(f"{problem}. Begin with --stage {needed.name}.")
