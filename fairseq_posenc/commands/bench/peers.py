"""Measure other implementations, each next to our implementation of the same method with the same sizes.

Each implementation is a whole layer, as its package builds it. All layers have the same width, no dropout, and an FFN
of four times the width. Some layers are pre-norm. The layers of T5 and DeBERTa include computations that a model does
only once for all layers. A package is imported only when it is measured. Packages that are not installed are named on
stderr.

Legend: B batch size, n tokens, h heads, D head width, d width.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .measure import Plan, measure
from .rows import Row, timed
from .settings import Setting, Shape, Subject
from .subjects import TOKENS, Step, step_of, step_on, without_gradients

if TYPE_CHECKING:
    from .peer_layers import Layer

#: Later versions changed relative_key and relative_key_query, with which our methods are compared.
TRANSFORMERS = "4.46"
#: Numbers of columns in the cache, and the number of sequences: 4 sentences with a beam of 4.
DECODING_LENGTHS, DECODING_BATCH = (128, 512), 16


@dataclass(frozen=True)
class Peer(Subject):
    """Another implementation.

    `encoding` is the name of the implementation, `module` its Python module, and `package` the distribution to install.

    Args:
        ours: Our encoding to compare it with, as the user would name it.
    """

    module: str = ""
    package: str = ""
    ours: str = ""

    def causal(self) -> bool:
        """Return False, because all other implementations are encoders."""
        return False

    def hooks(self) -> set[str]:
        """Return a name that no hook of an encoding has, so that no target applies to other implementations."""
        return {"of a peer"}

    def missing(self) -> str:
        """Return why this implementation cannot be measured; empty if it can."""
        if importlib.util.find_spec(self.module) is None:
            return f"{self.package} is not installed"
        if self.module == "transformers" and not version(self.package).startswith(TRANSFORMERS):
            return f"{self.package} {version(self.package)} is installed, but {TRANSFORMERS}.x is needed"
        return ""


_FAIRSEQ = ("fairseq", "fairseq-fixed")
_TRANSFORMERS = ("transformers", "transformers")
_X = ("x_transformers", "x-transformers")
_LIKE_V2 = "deberta:form=original,buckets=256,share-att-key=true,layer-norm=true"
PEERS = (
    Peer("fairseq", "", *_FAIRSEQ, "none"),
    Peer("bert-relative-key", "", *_TRANSFORMERS, "shaw"),
    Peer("bert-relative-key-query", "", *_TRANSFORMERS, "m4"),
    Peer("deberta-v2", "", *_TRANSFORMERS, _LIKE_V2),
    Peer("hf-t5", "", *_TRANSFORMERS, "t5"),
    Peer("x-t5", "", *_X, "t5"),
    Peer("xlnet", "", *_TRANSFORMERS, "xl"),
    Peer("x-rotary", "", *_X, "rope"),
    Peer("x-alibi", "", *_X, "alibi"),
)


FAIRSEQ = PEERS[0]


def label(subject: Subject) -> str | None:
    """Return the package and version of another implementation; None for our own encodings."""
    return f"{subject.package} {version(subject.package)}" if isinstance(subject, Peer) else None


def installed() -> list[Peer]:
    """Return the implementations that can be measured, and print on stderr why the others cannot."""
    missing = {peer.encoding: reason for peer in PEERS if (reason := peer.missing())}
    for name, reason in missing.items():
        print(f"bench: left out {name}: {reason}", file=sys.stderr)
    return [peer for peer in PEERS if peer.encoding not in missing]


def rows(shapes: Sequence[Shape], device: torch.device, plan: Plan) -> Iterator[Row]:
    """Yield the rows of all other implementations and of fairseq's decoding, each measured together with our layer."""
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
    from . import peer_layers

    with torch.random.fork_rng():
        torch.manual_seed(0)
        if setting.what == "decode":
            return _decoding_step(setting)
        layer = peer_layers.LAYERS[subject.encoding](setting)
        return _layer_step(layer, setting)


def _layer_step(layer: Layer, setting: Setting) -> Step:
    size = setting.batch, setting.length, setting.shape.dim
    x = torch.randn(*size, device=setting.device, dtype=setting.dtype)
    layer.module.to(setting.device, setting.dtype).train(setting.mode == "train")
    return step_on(x, layer.run, layer.module)


def _decoding_step(setting: Setting) -> Step:
    """Return a decoding step of fairseq's layer, whose cache concatenates all keys and values for each token."""
    from . import peer_layers

    layer = peer_layers.fairseq_decoder(setting).to(setting.device, setting.dtype).eval()
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
