"""Measure how long encodings take, in groups with one baseline, and repeat measurements that exceed their targets."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from .. import clock
from ..clock import Rounds, Step
from . import targets
from .settings import Setting, Subject

#: Largest number of subjects that share a baseline.
GROUP = 8
#: How often a row over its target is measured again.
AGAIN = 3
#: Fraction of the time for the first pass, and the weights by which groups share that time. A training step takes about
#: three times as long as an inference step, so inference gets more rounds.
FIRST_PART, TRAIN_WEIGHT, INFER_WEIGHT = 0.6, 3, 2


@dataclass
class Measured:
    """Hold the measurements of an encoding in a setting. `ratios` and `seconds` have one entry for each round."""

    subject: Subject
    setting: Setting
    target: float | None
    stretch: float | None
    ratios: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    passes: int = 0

    @property
    def ratio(self) -> float:
        """Return the median ratio of all rounds."""
        return statistics.median(self.ratios)

    @property
    def over(self) -> bool:
        """Return whether the ratio is above its target by more than the noise."""
        return self.target is not None and self.ratio > self.target + targets.NOISE


@dataclass(frozen=True)
class Plan:
    """Define how long to measure, and how to build the steps to time.

    Args:
        least, most: Smallest and largest number of rounds of the first pass. The first pass measures all pairs; each
            later pass measures those that still exceed their targets.
        seconds: Time for all passes together.
        build: Function that returns the step to time, for an encoding (None for the baseline) and a setting.
        tell: Function that is called before each group, with a description of the group and the number of groups left.
    """

    least: int
    most: int
    seconds: float
    build: Callable[[Subject | None, Setting], Step]
    tell: Callable[[str, int], None]


def measure(pairs: Sequence[tuple[Subject, Setting]], plan: Plan) -> list[Measured]:
    """Measure each pair of an encoding and a setting. Return the measurements in the order of the pairs."""
    results = [Measured(*pair, *target_of(*pair)) for pair in pairs]
    start = clock.now()
    _one_pass(results, plan, 1, start + FIRST_PART * plan.seconds)
    for attempt in range(2, AGAIN + 2):
        over = [result for result in results if result.over]
        if not over or clock.now() >= start + plan.seconds:
            break
        _one_pass(over, plan, attempt, start + plan.seconds)
    return results


def target_of(subject: Subject, setting: Setting) -> tuple[float | None, float | None]:
    """Return the target and the aim of an encoding in a setting; None stands for no target or no aim.

    Translation has targets in every setting. Layers and decoding have targets only on a CPU without padding, and only
    for shapes with `has_targets`. Only layers have aims.
    """
    if setting.what == "translation":
        return targets.of_translation(subject.encoding, subject.options, subject.hooks(), setting.mode), None
    if setting.padded or not setting.shape.has_targets or setting.device.type != "cpu":
        return None, None
    facts = subject.encoding, subject.options, subject.hooks()
    if setting.what == "decode":
        return targets.of_decoding(*facts, setting.length), None
    family = targets.family(*facts) if setting.what == "layer" else None
    if family is None:
        return None, None
    return family.at(setting.length, setting.mode), family.aim(setting.length, setting.mode)


def _one_pass(results: Sequence[Measured], plan: Plan, attempt: int, until: float) -> None:
    """Measure the groups one after another, each for a share of the time that remains until `until`.

    Pass number `attempt` allows `attempt` times as many rounds as the first pass. The first pass measures all groups;
    later passes stop at `until`.
    """
    groups = list(_groups(results))
    costs = {"train": TRAIN_WEIGHT, "infer": INFER_WEIGHT}
    weights = [len(group) * costs[group[0].setting.mode] for group in groups]
    for i, group in enumerate(groups):
        left = until - clock.now()
        if attempt > 1 and left <= 0:
            return
        plan.tell(f"{group[0].setting}{', again' if attempt > 1 else ''}", len(groups) - i)
        share = left * weights[i] / sum(weights[i:])
        _time(group, plan, Rounds(plan.least, plan.most * attempt, clock.now() + share))


def _groups(results: Iterable[Measured]) -> Iterator[tuple[Measured, ...]]:
    """Yield groups of at most `GROUP` results that have the same setting, in the order of `results`."""
    together: dict[Setting, list[Measured]] = {}
    for result in results:
        together.setdefault(result.setting, []).append(result)
    for members in together.values():
        yield from (tuple(members[i : i + GROUP]) for i in range(0, len(members), GROUP))


def _time(group: Sequence[Measured], plan: Plan, rounds: Rounds) -> None:
    setting = group[0].setting
    steps = [plan.build(None, setting), *(plan.build(result.subject, setting) for result in group)]
    for baseline, *others in clock.interleaved(steps, rounds, setting.device):
        for result, seconds in zip(group, others, strict=True):
            result.ratios.append(seconds / baseline)
            result.seconds.append(seconds)
    for result in group:
        result.passes += 1
