"""Test which target each encoding has."""

from __future__ import annotations

import pytest
import torch

from fairseq_posenc.commands.bench import measure, rows, targets
from fairseq_posenc.commands.bench.settings import Setting, Shape, Subject

from .scene import CPU, TINY, layer

#: Targets (train, infer) of each encoding at n = 128, then at n = 512.
CONTENT_FREE = (1.02, 1.02, 1.03, 1.05)
TARGETS = {
    "t5": CONTENT_FREE,
    "sentence-restart": CONTENT_FREE,
    "tupe": (1.05, 1.02, 1.06, 1.05),
    "shaw:clip=64": (1.03, 1.03, 1.05, 1.07),
    "shaw": (1.05, 1.05, 1.10, 1.11),
    "m4:reset=vector": (1.10, 1.11, 1.21, 1.28),
    "m4m": (1.15, 1.16, 1.26, 1.33),
}
WITHOUT = "cope linformer diet-abs-lin shaw:values=true shaw:share=none m4:clip=8 deberta:form=original".split()
DECODING = {
    "t5": 1.02, "learned": 1.02, "tupe": 1.02, "m1": 1.02, "shaw": 1.05, "m4": 1.4, "m4m": 1.4, "m3": 1.4,
    "xl": 1.2, "deberta": 1.6, "shaw:clip=64": 1.1, "m4:clip=64": 1.1, "m4m:clip=64": 1.1, "lfhc:clip=64": 1.1,
    "cope": None, "rope": None, "gcdf": None,
}  # fmt: skip
MEMORY = {"shaw": 1.15, "xl": 1.15, "m3": 1.15, "deberta": 1.35, "m4": 1.35, "m4m": 1.5, "cope": None, "t5": None}


def layer_targets(subject: Subject) -> tuple[float | None, ...]:
    """Return the targets (train, infer) at n = 128, then at n = 512."""
    settings = [("train", 128), ("infer", 128), ("train", 512), ("infer", 512)]
    where = (layer(mode, length) for mode, length in settings)
    return tuple(measure.target_of(subject, setting)[0] for setting in where)


@pytest.mark.parametrize("text", [*TARGETS, *WITHOUT])
def test_targets_of_layers(text: str) -> None:
    assert layer_targets(Subject.of(text)) == TARGETS.get(text, (None,) * 4)


@pytest.mark.parametrize("family", targets.FAMILIES, ids=lambda family: family.name)
def test_a_member_has_the_targets_of_its_family(family: targets.Family) -> None:
    for member in family.members.split():
        assert layer_targets(Subject.of(member)) == (*family.short, *family.long)


def test_unlisted_encodings_are_content_free_by_their_hooks() -> None:
    assert layer_targets(Subject("learned+t5")) == CONTENT_FREE
    assert layer_targets(Subject("learned+m4m")) == (None,) * 4


def test_other_shapes_pads_and_gpus_have_no_targets() -> None:
    other = Shape("other", 16, 2, ((512, 1),), ((512, 1),))
    for setting in (
        Setting("layer", "train", other, 512, 1, CPU),
        Setting("layer", "train", TINY, 512, 1, CPU, padded=True),
        Setting("layer", "train", TINY, 512, 1, torch.device("cuda")),
        Setting("model", "train", TINY, 512, 1, CPU, layers=4),
        Setting("layer", "train", TINY, 256, 1, CPU),
    ):
        assert measure.target_of(Subject("t5"), setting) == (None, None)


@pytest.mark.parametrize("text", DECODING)
def test_targets_of_decoding(text: str) -> None:
    at = [measure.target_of(Subject.of(text), Setting("decode", "infer", TINY, n, 1, CPU))[0] for n in (128, 512)]
    assert at == [None, DECODING[text]]


@pytest.mark.parametrize("text", MEMORY)
def test_targets_of_memory(text: str) -> None:
    subject = Subject.of(text)
    assert targets.of_memory(subject.encoding, subject.options, 512) == MEMORY[text]
    assert targets.of_memory(subject.encoding, subject.options, 128) is None


def test_noise_is_allowed_for_time_and_not_for_memory() -> None:
    setting = Setting("memory", "train", TINY, 512, 1, CPU)
    time_row = rows.Row.of(Subject("t5"), layer(), ratio=1.06, target=1.03)
    assert time_row.holds is True
    assert rows.Row.of(Subject("t5"), setting, ratio=1.16, target=1.15).holds is False
    assert rows.Row.of(Subject("t5"), setting, ratio=1.16).holds is None
