"""Test that options that are wrong, have no effect or cannot be combined raise errors that give the reason."""

from __future__ import annotations

import pytest
import torch
from one_layer import CPU, build_encoding

from fairseq_posenc.positions import Positions

ENCODER, WITH_CLS, DECODER = {}, {"has_cls": True}, {"causal": True}

REFUSED = [  # encoding, options, stack, patterns that the message matches
    ("cope", "", ENCODER, ["does not work in an encoder"]),
    ("cope", "n_max=1", DECODER, ["n_max=1 must be from 2 to 65536"]),
    ("deberta", "buckets=4", ENCODER, ["buckets=4 belongs to form=original"]),
    ("deberta", "share_att_key=true", ENCODER, ["share_att_key=True belongs to form=original"]),
    ("deberta", "layer_norm=true", ENCODER, ["layer_norm=True belongs to form=original"]),
    ("deberta", "form=original,share=none", ENCODER, ["share=none belongs to form=paper"]),
    ("deberta", "form=original,tie_wr_wt=true", ENCODER, ["tie_wr_wt=true belongs to form=paper"]),
    ("deberta", "form=original,buckets=5", ENCODER, ["buckets=5", "even number"]),
    ("deberta", "form=original,buckets=2", ENCODER, ["buckets=2 must be from 4 to 4096"]),
    ("deberta", "form=original,buckets=6,clip=4", ENCODER, ["clip=4 must be greater than 4", "buckets=6"]),
    ("rope+deberta", "", ENCODER, ["deberta sets the scale of the content product q·k, but rope changes the queries"]),
    ("deberta+tupe", "", WITH_CLS, ["deberta and tupe both set the scale"]),
    *(("diet-abs", args, ENCODER, ["init"]) for args in ("init=zeros", "init=ones", "init_std=0")),
    *(("diet-abs", f"rank={r}", ENCODER, [rf"diet-abs: rank={r} must be from 1 to 4096"]) for r in (0, -1)),
    ("diet-abs", "extend=interpolate", ENCODER, ["belong together"]),
    ("diet-abs-lin", "init_std=0", ENCODER, ["init_std=0"]),
    ("fire", "threshold=0", DECODER, ["threshold=0"]),
    ("fire", "width=0", DECODER, ["width=0"]),
    ("gcdf", "lambda=0", ENCODER, [r"gcdf: lambda=0\.0 must be from 1e-06 to 1000000"]),
    ("lfhc", "clip=0", ENCODER, ["clip=0 must be from 1"]),
    ("shaw", "clip=0", ENCODER, [r"pos_enc_args \(--pos-enc-args\): shaw: clip=0 must be from 1 to n, and n is 8"]),
    ("shaw", "clip=9", ENCODER, [r"pos_enc_args \(--pos-enc-args\): shaw: clip=9 must be from 1 to n, and n is 8"]),
    ("m1", "clip=4", ENCODER, ["no option clip"]),
    ("m4", "scale=0", WITH_CLS, [r"scale=0\.0 must be from 1e-06 to 1000000"]),
    ("m4", "reset=vector", ENCODER, [r"needs a \[CLS\].*set reset=none"]),
    ("m4", "reset=scalar", DECODER, ["decoder.*set reset=none"]),
    ("m4m", "gate_offset=-1", WITH_CLS, ["gate_offset=-1.0 must not be negative: use 1.0"]),
    ("m4m", "reset=vector", WITH_CLS, ["no option reset"]),
    ("m4m", "init=zeros", WITH_CLS, ["never learns"]),
    ("m4m", "init_std=0", WITH_CLS, ["never learns"]),
    ("m4+t5", "m4.scale=3,content_scale=one", WITH_CLS, ["m4 and t5 both set the scale"]),
    ("m4+m2", "scale=3", WITH_CLS, ["m4 sets the scale of the content product q·k, but m2 replaces this product"]),
    ("sandwich", "width=3", DECODER, ["sandwich: width=3", "even number"]),
    ("rope", "scaling=linear", DECODER, ["scaling=linear", "factor"]),
    ("rope", "scaling=dynamic", DECODER, ["scaling=dynamic must be one of none, .*; did you mean ntk"]),
    ("rope", "scaling=yarm", DECODER, ["scaling=yarm must be one of none, .*; did you mean yarn"]),
    ("rope", "scaling", DECODER, [r"^pos_enc_args \(--pos-enc-args\): 'scaling' is not NAME=VALUE"]),
    ("rope", "scalings=ntk", DECODER, [r"^pos_enc_args \(--pos-enc-args\): there is no option scalings"]),
    ("ropee", "", DECODER, [r"^pos_enc \(--pos-enc\): unknown position encoding 'ropee'"]),
    ("rope", "factor=4", DECODER, ["scaling=none", r"factor=4\.0", "scaling=linear,factor=2"]),
    ("rope", "scaling=linear,factor=1", DECODER, [r"factor=1\.0 must be from 1\.001 to 10000"]),
    (
        *("rope", "scaling=linear,factor=4,original_length=8", DECODER),
        ["original_length", "scaling=yarn", "scaling=linear"],
    ),
    ("rope", "form=original", DECODER, ["form", "scaling=yarn", "scaling=none"]),
    ("rope", "scaling=yarn,factor=2,original_length=0", DECODER, ["original_length=0 must be from 1 to 10000000"]),
    ("rope", "fraction=0", DECODER, [r"fraction=0\.0 must be from 0\.001 to 1"]),
    ("rope", "fraction=1.5", DECODER, [r"fraction=1\.5 must be from 0\.001 to 1"]),
    ("rope", "fraction=0.25", {"head_dim": 4}, [r"fraction=0\.25", "4", "less than one pair"]),
    ("rope", "fraction=0.5,scaling=ntk,factor=2", {"head_dim": 4}, ["scaling=ntk", "two or more", "linear"]),
    ("rope", "proportion=1.5", DECODER, [r"proportion=1\.5 must be from 0\.001 to 1"]),
    ("rope", "proportion=0.25", {"head_dim": 4}, [r"proportion=0\.25", "4", "less than one pair", "proportion=0.5"]),
    ("rope", "fraction=0.5,proportion=0.5", DECODER, ["fraction=0.5 and proportion=0.5", "only one"]),
    ("rope", "scaling=yarn", DECODER, ["scaling=yarn needs factor", "scaling=yarn,factor=2"]),
    ("rope", "", {"head_dim": 5}, ["even", "5"]),
    ("rope+t5", "scaling=yarn,factor=2,content_scale=one", DECODER, ["rope and t5 both set the scale"]),
    ("rope+xl", "", ENCODER, ["rope and xl both change the queries"]),
    ("rope+gcdf", "", ENCODER, ["rope and gcdf both change the queries"]),
    ("tupe", "form=original,share=all", WITH_CLS, ["share=all belongs to form=paper"]),
    ("tupe", "form=original,init=ones", WITH_CLS, ["init=ones works with form=paper only"]),
    *(
        ("tupe", f"form={form},{start}", WITH_CLS, ["a table of positions that starts at zeros never learns"])
        for form in ("paper", "original")
        for start in ("init=zeros", "init_std=0")
    ),
    ("xl", "clamp=0", ENCODER, ["xl: clamp=0"]),
    ("gcdf", "clamp=0", ENCODER, ["gcdf: clamp=0"]),
    ("fox", "", ENCODER, ["fox does not work in an encoder.*With the option later=true"]),
    ("rope+fox", "later=true", DECODER, [r"rope\+fox does not work in a decoder.*Without the option later=true"]),
    ("xpos", "", ENCODER, ["does not work in an encoder"]),
    ("xpos", "scale_base=0", DECODER, ["scale_base=0"]),
    ("xpos", "base=1", DECODER, ["base=1"]),
    *(
        row
        for spec in ("linformer", "diet-abs-lin")
        for row in (
            (spec, "", DECODER, [f"{spec} does not work in a decoder"]),
            (spec, "slots=0", ENCODER, [rf"args\): {spec}: slots=0 must be a number from 1 to n, and n is 8"]),
            (spec, "slots=9", ENCODER, [rf"args\): {spec}: slots=9 must be a number from 1 to n, and n is 8"]),
            *(
                (f"{other}+{spec}", "", ENCODER, [f"{spec} compresses the keys .* but {other} needs positions of keys"])
                for other in ("diet-rel", "diet-abs", "segments", "shaw")
            ),
        )
    ),
    *(
        row
        for spec in ("segments", "segments-input")
        for row in (
            (spec, "segments=1", ENCODER, ["segments=1 must be from 2 to 256"]),
            (spec, "", DECODER, [f"{spec} does not work in a decoder"]),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "args", "stack", "patterns"), REFUSED)
def test_what_cannot_be_built_is_refused(spec: str, args: str, stack: dict[str, int], patterns: list[str]) -> None:
    for pattern in patterns:
        with pytest.raises(ValueError, match=pattern):
            build_encoding(spec, args, **stack)


NO_CLS = Positions(3, 3, CPU)
SEGMENTS = torch.tensor([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 0]])


def with_segments(segments: torch.Tensor | None) -> Positions:
    return Positions(6, 6, CPU, segments=segments)


MISSING = [
    ("tupe", "", NO_CLS, r"begin with \[CLS\].*Positions.cls_column is None"),
    ("m4", "reset=vector", NO_CLS, r"begin with \[CLS\].*Positions.cls_column is None"),
    *(
        row
        for spec in ("segments", "segments-input")
        for row in (
            (spec, "", with_segments(None), f"{spec} needs .*segment.*segments=.*remove {spec} from pos_enc"),
            (
                *(spec, "", with_segments(SEGMENTS * 2)),
                f"{spec} has parameters for the segments 0 to 1, .* 0 to 2: set pos_enc_args .* segments=3",
            ),
            (spec, "", with_segments(SEGMENTS - 1), "contains -1, but segment ids start at 0"),
        )
    ),
]


@pytest.mark.parametrize(("spec", "args", "positions", "pattern"), MISSING)
def test_positions_without_what_an_encoding_reads_are_refused(
    spec: str, args: str, positions: Positions, pattern: str
) -> None:
    with pytest.raises(ValueError, match=pattern):
        build_encoding(spec, args, has_cls=spec in ("tupe", "m4")).check(positions)
