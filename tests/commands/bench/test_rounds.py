"""Test interleaved rounds, and when a row is measured again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from fairseq_posenc.commands import clock
from fairseq_posenc.commands.bench import measure
from fairseq_posenc.commands.bench.settings import Setting, Subject
from fairseq_posenc.commands.clock import Rounds
from fairseq_posenc.encodings import specs

from .scene import CPU, Clock, layer


def test_every_round_times_each_step_once_and_begins_with_another(time: Clock) -> None:
    calls: list[int] = []
    steps = [lambda i=i: calls.append(i) for i in range(3)]
    seconds = clock.interleaved(steps, Rounds(4, 4), CPU)
    assert calls == [0, 1, 2, *(0, 1, 2), *(1, 2, 0), *(2, 0, 1), *(0, 1, 2)]  # the first three are the warm-up
    assert seconds == [[1.0] * 3] * 4


def test_rounds_end_with_the_time_but_not_before_the_least(time: Clock) -> None:
    assert len(clock.interleaved([lambda: None], Rounds(3, 9, until=0.0), CPU)) == 3
    until = time.seconds + 2 + 5 * 3  # a round of one step reads the clock three times, its warm-up twice
    assert len(clock.interleaved([lambda: None], Rounds(1, 99, until), CPU)) == 5


@pytest.mark.parametrize(("threads", "seconds"), [(1, 1.0), (2, 5.0)])
def test_one_thread_is_timed_by_its_cpu_time(threads: int, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here, other programs take four seconds for each second of this process."""
    busy = Clock()
    monkeypatch.setattr(clock, "busy", busy)
    monkeypatch.setattr(clock, "now", lambda: 5 * busy())
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    assert clock.interleaved([lambda: None], Rounds(2, 2), CPU) == [[seconds]] * 2


def test_the_spread_is_half_the_interquartile_range() -> None:
    assert clock.spread([1.0, 2.0, 3.0, 4.0, 5.0]) == 1.0
    assert clock.spread([7.0]) == 0.0


def plan(time: Clock, cost: Callable[[Subject | None], float], **options: Any) -> measure.Plan:
    """Return a plan whose steps only move the clock forward."""

    def build(subject: Subject | None, setting: Setting) -> clock.Step:
        def step() -> None:
            time.seconds += cost(subject)

        return step

    return measure.Plan(build=build, tell=lambda what, left: None, **options)


def test_the_ratio_is_that_of_the_same_round(time: Clock) -> None:
    """The simulated machine gets slower with every call, for the baseline as well as for the others."""
    slower = iter(range(1, 1000))
    setting = layer()
    pairs = [(Subject("t5"), setting)]
    the_plan = plan(time, lambda subject: 1e3 * next(slower), least=50, most=50, seconds=float("inf"))
    assert measure.measure(pairs, the_plan)[0].ratio == pytest.approx(1.0, abs=0.02)


def test_eight_subjects_share_a_baseline(time: Clock) -> None:
    setting = layer()
    built: list[Subject | None] = []
    the_plan = plan(time, lambda subject: 1.0, least=1, most=1, seconds=float("inf"))
    make = the_plan.build
    counting = measure.Plan(
        1, 1, the_plan.seconds, lambda s, where: (built.append(s), make(s, where))[1], the_plan.tell
    )
    measure.measure([(Subject("t5"), setting)] * 17, counting)
    assert [i for i, subject in enumerate(built) if subject is None] == [0, 9, 18]


def test_a_row_over_its_target_is_measured_again_and_all_rounds_count(time: Clock) -> None:
    setting = layer()
    pairs = [(Subject(name), setting) for name in ("t5", "alibi", "kerple")]
    calls: dict[Subject | None, int] = {}

    def cost(subject: Subject | None) -> float:
        calls[subject] = calls.get(subject, 0) + 1
        bad_luck = subject == Subject("alibi") and calls[subject] <= 3  # the warm-up and the first two rounds
        return 1e6 * (2.0 if subject == Subject("kerple") or bad_luck else 1.0)

    good, lucky, slow = measure.measure(pairs, plan(time, cost, least=2, most=2, seconds=float("inf")))
    assert (good.passes, len(good.ratios), good.over) == (1, 2, False)
    assert (lucky.passes, len(lucky.ratios), lucky.over) == (2, 2 + 4, False)  # two bad rounds of six
    assert (slow.passes, len(slow.ratios), slow.over) == (4, 2 + 4 + 6 + 8, True)


def test_a_quick_run_ends_in_time(time: Clock) -> None:
    """Every row is far over its target, so only the time limit stops the benchmark."""
    pairs = [
        (Subject(name), layer(mode, length))
        for length in (128, 512)
        for mode in ("train", "infer")
        for name in specs()
        if name not in ("cope", "linformer", "diet-abs-lin", "alibi", "xpos")
    ]
    results = measure.measure(
        pairs, plan(time, lambda subject: 2.0 if subject else 1.0, least=3, most=15, seconds=2500.0)
    )
    assert time.seconds <= 2500.0 * 1.15
    assert all(len(subject.ratios) >= 3 for subject in results)
    assert max(subject.passes for subject in results) > 1
