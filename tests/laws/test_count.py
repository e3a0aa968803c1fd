"""Test law 9: an encoding has as many parameters as its paper says."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fairseq_posenc.encodings import StackShape, build

from .cases import Case, directions, every

BASE = StackShape(layers=12, heads=12, dim=768, max_length=512, has_cls=True)
DECODER = replace(BASE, causal=True, has_cls=False)
WIKITEXT = StackShape(layers=16, heads=10, dim=410, max_length=300, causal=True)

#: Number of parameters of each encoding in BERT-base, by its options, from the formulas and tables of the papers.
PUBLISHED: dict[str, dict[str, int]] = {
    "none": {"": 0}, "sinusoidal": {"": 0}, "xpos": {"": 0}, "alibi": {"": 0}, "sandwich": {"": 0},
    "learned": {"": 393_216}, "sentence-restart": {"": 393_216},
    "shaw": {"": 785_664, "share=none": 9_427_968, "values=true": 2 * 785_664},
    "raffel": {"": 12_276, "share=none": 147_312},
    "t5": {"": 384},
    "m1": {"": 6_144, "share=none": 73_728},
    "m2": {"": 12_276, "share=none": 147_312},
    "m3": {"": 785_664, "share=none": 9_427_968, "clip=4": 12 * 9 * 64},
    "m4": {
        "": 785_664, "share=none": 9_427_968, "clip=64": 12 * 129 * 64,
        "reset=vector": 787_200, "reset=scalar": 785_664 + 24,
    },
    "m4m": {"": 785_664, "share=none": 9_427_968},
    "learned+m4m": {"": 1_178_880},
    "learned+shaw": {"": 1_178_880},
    "xl": {"": 7_096_320, "biases=tied": 7_079_424, "biases=none": 7_077_888},
    "gcdf": {"": 7_096_320, "biases=tied": 7_079_424, "biases=none": 7_077_888},
    "lfhc": {"": 12 * 33 * 768, "clip=511": 9_427_968},  # like Shaw with a table per head
    "deberta": {
        "": 883_968, "tie_wr_wt=true": 834_816, "share=none": 12 * (9_427_968 // 12 + 12 * 2 * 64 * 64),
        "form=original": 1024 * 768 + 12 * 2 * (768 * 768 + 768),
        "form=original,share_att_key=true": 1024 * 768,
        "form=original,share_att_key=true,layer_norm=true,buckets=256": 512 * 768 + 2 * 768,  # DeBERTa-v3
    },
    "tupe": {
        "": 503_820, "reset=none": 503_796, "relative=false,reset=none": 503_796 - 12_276,
        "form=original": 1_576_704 + 396, "form=original,relative=false": 1_576_704,
    },
    "diet-rel": {
        "": 147_312, "share=head-wise": 12_276, "share=layer-wise": 12_276, "share=all": 1_023,
        "clip=16,share=none": 12 * 12 * 33,
    },
    "diet-abs": {
        "": 786_432, "share=none": 9_437_184, "rank=128": 1_572_864, "rank=128,share=none": 18_874_368,
        **{f"rank=128,share={share}-wise": 1_572_864 for share in ("head", "layer")},
    },
    "segments-input": {"": 1_536},
    "segments": {"": 576, "share=layer-wise": 48, "share=head-wise": 48, "share=all": 4, "segments=3": 12 * 12 * 9},
    "diet-abs+segments": {"diet-abs.rank=128,segments.share=layer-wise": 1_572_864 + 48},
    "diet-rel+segments": {"": 147_312 + 576},
    "linformer": {
        "": 12 * 2 * 128 * 512, "slots=256": 12 * 2 * 256 * 512, "slots=256,share_kv=true": 12 * 256 * 512,
        "slots=256,share_layers=true": 2 * 256 * 512, "slots=256,share_kv=true,share_layers=true": 256 * 512,
    },
    "learned+linformer": {"slots=256": 393_216 + 12 * 2 * 256 * 512},
    "segments-input+linformer": {"slots=256": 1_536 + 12 * 2 * 256 * 512},
    "diet-abs-lin": {
        "slots=256,share=none": 12 * (2 * 256 * 512 + 12 * 64 * (512 + 256)),
        "slots=256,rank=128": 12 * 2 * 256 * 512 + 12 * 128 * (512 + 256),
    },
    "rope": {
        "": 0, "fraction=0.5": 0, "proportion=0.5": 0,
        **{f"scaling={kind},factor=2": 0 for kind in ("linear", "ntk", "yarn")},
        "fourier=true": 2 * 12 * 12 * 16**2, "fourier=true,share=layer-wise": 2 * 12 * 16**2,
    },
    "kerple": {"": 24, "share=none": 288, "share=head-wise": 24, "share=all": 2},
    "fire": {"": 5544, "share=layer-wise": 462, "share=head-wise": 1188, "share=all": 99, "width=16": 12 * 238},
    "fox": {"": 12 * 12 * 769},
    "logn": {"": 144, "share=all": 1, "form=llama4,interval=64": 0},
    "pope": {"": 12 * 768},
    "wall": {"": 12 * 768 * 769},
    "path": {"": 12 * (2 * 32 * 768 + 12 * 769), "rank=8": 12 * (2 * 8 * 768 + 12 * 769)},
    "alibi+dape": {"": 12 * (32 * 25 + 12 * 33), "hidden=64": 12 * (64 * 25 + 12 * 65)},
    "cope": {
        "": 393_216, "n_max=64": 49_152, "share=none": 4_718_592, "share=layer-wise": 393_216, "share=all": 32_768,
    },
}  # fmt: skip
COUNTS = {(spec, args): count for spec, counts in PUBLISHED.items() for args, count in counts.items()}

OTHER_STACKS = [
    ("tupe", "", replace(BASE, has_cls=False), 503_796),
    ("tupe", "form=original", replace(BASE, has_cls=False), 1_576_704 - 768 + 384),  # without those of [CLS]
    *((spec, "", WIKITEXT, 2_702_720) for spec in ("xl", "gcdf")),
    ("lfhc", "", WIKITEXT, 216_480),  # k = 16
    ("lfhc", "clip=4", StackShape(layers=8, heads=8, dim=512, max_length=512), 36_864),  # text classification
    ("lfhc", "", StackShape(layers=2, heads=2, dim=8, max_length=6), 2 * 11 * 8),  # without unreachable rows
]


def count(spec: str, args: str, shape: StackShape) -> int:
    """Return the number of parameters, for which no memory is needed."""
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build(spec, args, shape).parameters())


def check_count(case: Case) -> None:
    """Compare the count with the built encoding at several sizes."""
    for sizes in ({}, {"layers": 3, "heads": 4}, {"head_dim": 6, "max_length": 9}):
        shape = case.shape(**sizes)
        for member in case.encoding(shape).members.values():
            has = sum(parameter.numel() for parameter in member.parameters())
            says = type(member).count(member.options, shape)
            assert has == says, f"{has} parameters, not {says}"
            stored = sum(value.numel() for value in member.state_dict().values())
            assert stored == has, f"{stored} numbers are stored, {has} counted"


@pytest.mark.parametrize("case", every(), ids=str)
def test_the_count_is_that_of_the_formula(case: Case) -> None:
    check_count(case)


@pytest.mark.parametrize(("spec", "args"), COUNTS)
def test_the_count_of_a_base_model_is_the_published_one(spec: str, args: str) -> None:
    first = spec.partition("+")[0]
    assert count(spec, args, BASE if False in directions(first) else DECODER) == COUNTS[spec, args]


@pytest.mark.parametrize(("spec", "args", "shape", "published"), OTHER_STACKS)
def test_the_count_of_other_stacks_is_the_published_one(
    spec: str, args: str, shape: StackShape, published: int
) -> None:
    assert count(spec, args, shape) == published
