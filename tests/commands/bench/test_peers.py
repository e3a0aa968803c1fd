"""Test the other implementations: each layer has the requested shape and runs like ours."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch

from fairseq_posenc.commands import peer_layers
from fairseq_posenc.commands.bench import peers
from fairseq_posenc.commands.bench.peers import PEERS, Peer
from fairseq_posenc.commands.bench.settings import Setting, Shape, Subject
from fairseq_posenc.commands.peer_layers import Size

from .scene import CPU, Clock

WIDE = Shape("wide", 64, 2, ((128, 2),), ())


def installed(peer: Peer) -> Peer:
    """Return an installed peer. If it is missing, skip, or fail if the environment must be complete."""
    if missing := peer.origin.missing():
        if os.environ.get("POSENC_REQUIRE_ORACLES", "0") not in ("", "0"):
            pytest.fail(missing)
        pytest.skip(missing)
    return peer


def test_every_peer_has_a_layer_and_an_encoding_of_ours() -> None:
    assert {peer.encoding for peer in PEERS} == set(peer_layers.LAYERS)
    for peer in PEERS:
        assert not Subject.of(peer.ours).causal()
        assert peer.hooks().isdisjoint(Subject.of(peer.ours).hooks())


@pytest.mark.parametrize("peer", PEERS, ids=str)
def test_a_peer_is_a_layer_of_the_size_of_ours(peer: Peer) -> None:
    layer = peer_layers.LAYERS[installed(peer).encoding](Size(64, 2, 128, 2, CPU))
    x = torch.randn(2, 128, 64)
    assert layer.run(x).shape == x.shape
    matrices = [p.numel() for p in layer.module.parameters() if p.dim() > 1 and p.numel() >= 64 * 64]
    assert 12 * 64 * 64 <= sum(matrices) <= 20 * 64 * 64  # projections, an FFN and a table of at most 512 rows


@pytest.mark.parametrize("name", ["fairseq", "x-t5"])
def test_a_peer_has_a_step_of_training_and_of_inference(name: str) -> None:
    peer = installed(next(peer for peer in PEERS if peer.encoding == name))
    gradients: Any = peers.step_of_peer(peer, Setting("layer", "train", WIDE, 128, 2, CPU))()
    assert sum(g is not None for g in gradients) > 10
    output: Any = peers.step_of_peer(peer, Setting("layer", "infer", WIDE, 128, 2, CPU))()
    assert not output.requires_grad


def test_rows_of_peers_are_next_to_ours_and_have_no_targets(run: Any, time: Clock) -> None:
    for peer in PEERS:
        installed(peer)
    _, rows = run("--parts", "peers", "--rounds", "1", "--quick")
    layers = [row for row in rows if row["what"] == "layer" and row["mode"] == "train" and row["length"] == 128]
    order = [row["encoding"] for row in layers]
    for peer in PEERS:
        assert order.index(Subject.of(peer.ours).encoding) < order.index(peer.encoding)
    theirs = [row for row in rows if row["peer"]]
    assert {row["encoding"] for row in theirs} == {peer.encoding for peer in PEERS}
    assert all(row["target"] is None for row in theirs)
    assert {row["encoding"] for row in rows if row["what"] == "decode"} == {"none", "fairseq"}


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(peers, "PEERS", (Peer("theirs", "", "no_such_module", "no-such-package", "shaw"),))
    assert peers.installed() == []
    assert "skips theirs: no-such-package is not installed" in capsys.readouterr().err


def test_another_version_of_transformers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = installed(next(peer for peer in PEERS if peer.module == "transformers"))
    monkeypatch.setattr(peer_layers, "version", lambda package: "5.0.1")
    assert peer.origin.missing() == "transformers 5.0.1 is installed, but 4.46.x is needed"
