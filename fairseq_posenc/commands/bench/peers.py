"""Measure the position encodings of other packages, and our layers with the same encodings and sizes.

Each implementation is a whole layer, as its package builds it. All layers have the same width, no dropout, and an FFN
of four times the width. Some layers are pre-norm. The layers of T5 and DeBERTa include computations that a model does
only once for all layers. A package is imported only when it is measured. If a package is not installed, a line on
stderr says so.

Legend: B batch size, n tokens, h heads, D head width, d width.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..clock import Step
from ..peer_layers import LAYERS, ORIGINS, Layer, Origin, Size, fairseq_decoder
from ..steps import step_on, without_gradients
from .measure import Plan, measure
from .rows import Row, timed
from .settings import Setting, Shape, Subject
from .subjects import TOKENS, step_of

#: Numbers of columns in the cache, and the number of sequences: 4 sentences with a beam of 4.
DECODING_LENGTHS, DECODING_BATCH = (128, 512), 16


@dataclass(frozen=True)
class Peer(Subject):
    """Describe another package's implementation of an encoding.

    Args:
        encoding: Name of the implementation.
        module: Python module to import.
        package: Distribution to install with pip.
        ours: Our encoding to compare it with, in the form of --encodings.
    """

    module: str = ""
    package: str = ""
    ours: str = ""

    def causal(self) -> bool:
        """Return False, because all other implementations are measured as encoders."""
        return False

    def hooks(self) -> set[str]:
        """Return a name that no hook has, so that other implementations have no targets."""
        return {"of a peer"}

    @property
    def origin(self) -> Origin:
        """Return where the layer comes from."""
        return Origin(self.module, self.package, self.ours)


PEERS = tuple(Peer(name, "", *origin) for name, origin in ORIGINS.items())
FAIRSEQ = PEERS[0]


def label(subject: Subject) -> str | None:
    """Return the package and version of another implementation; None for our own encodings."""
    return subject.origin.label() if isinstance(subject, Peer) else None


def installed() -> list[Peer]:
    """Return the implementations that can be measured, and print on stderr why the others cannot."""
    missing = {peer.encoding: reason for peer in PEERS if (reason := peer.origin.missing())}
    for name, reason in missing.items():
        print(f"bench: skips {name}: {reason}", file=sys.stderr)
    return [peer for peer in PEERS if peer.encoding not in missing]


def rows(shapes: Sequence[Shape], device: torch.device, plan: Plan) -> Iterator[Row]:
    """Yield a row for each implementation of another package, and for our layer with the same encoding.

    For fairseq's layer, also yield rows for decoding.
    """
    peers = installed()
    subjects = list(dict.fromkeys(subject for peer in peers for subject in (Subject.of(peer.ours), peer)))
    pairs: list[tuple[Subject, Setting]] = [
        (subject, Setting("layer", mode, shape, length, batch, device))
        for shape in shapes
        for length, batch in shape.on(device)
        for mode in ("train", "infer")
        for subject in subjects
    ]
    pairs += [
        (subject, Setting("decode", "infer", shape, length, DECODING_BATCH, device, causal=True))
        for shape in shapes
        for length in DECODING_LENGTHS
        for subject in subjects
        if "fairseq" in (subject.encoding, *(peer.encoding for peer in peers if Subject.of(peer.ours) == subject))
    ]
    for result in measure(pairs, replace(plan, build=step_of_peer)):
        yield timed(result, peer=label(result.subject))


def step_of_peer(subject: Subject | None, setting: Setting) -> Step:
    """Return a step of another implementation or of our own layer."""
    if not isinstance(subject, Peer):
        return step_of(subject, setting)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if setting.what == "decode":
            return _decoding_step(setting)
        layer = LAYERS[subject.encoding](_size(setting))
        return _layer_step(layer, setting)


def _size(setting: Setting) -> Size:
    return Size(setting.shape.dim, setting.shape.heads, setting.length, setting.batch, setting.device)


def _layer_step(layer: Layer, setting: Setting) -> Step:
    size = setting.batch, setting.length, setting.shape.dim
    x = torch.randn(*size, device=setting.device, dtype=setting.dtype)
    layer.module.to(setting.device, setting.dtype).train(setting.mode == "train")
    return step_on(x, layer.run, layer.module)


def _decoding_step(setting: Setting) -> Step:
    """Return a decoding step of fairseq's layer, which copies all cached keys and values for each new token."""
    layer = fairseq_decoder(_size(setting)).to(setting.device, setting.dtype).eval()
    start = setting.length - TOKENS
    kind = {"device": setting.device, "dtype": setting.dtype}
    x = torch.randn(TOKENS, 1, setting.batch, setting.shape.dim, **kind)  # type: ignore[call-overload]
    cached: Tensor = torch.randn(setting.batch, setting.shape.heads, start, setting.stack.head_dim, **kind)  # type: ignore[call-overload]

    def decode() -> None:
        state: dict[str, dict[str, Tensor | None]] = {}
        before = {"prev_key": cached, "prev_value": cached, "prev_key_padding_mask": None}
        layer.self_attn._set_input_buffer(state, before)
        for token in x:
            layer(token, incremental_state=state)

    return without_gradients(decode)
