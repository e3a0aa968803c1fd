"""Test `figures`: every figure is drawn from its checkpoints or data."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.data.indexed_dataset import make_builder
from support_analysis import stack

from fairseq_posenc.analysis.trained import load, on_text
from fairseq_posenc.commands import figures
from fairseq_posenc.compat import safe_load

DECODER = ["--side", "decoder"]


def draw(name: str, output: Path, *arguments: Any) -> list[dict[str, str]]:
    """Draw a figure, check its files and return its data."""
    assert figures.main([name, "--output", str(output), *map(str, arguments)]) == 0
    (png,), (pdf,), (data,) = (sorted(output.glob(f"{name}*.{suffix}")) for suffix in ("png", "pdf", "csv"))
    assert png.read_bytes().startswith(b"\x89PNG")
    assert pdf.read_bytes().startswith(b"%PDF")
    assert len(list(output.iterdir())) == 3
    with data.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# -- models ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "side"), [("memory", []), ("translation", DECODER)])
def test_ranks_and_patterns_of_decoders(
    model: str, side: list[str], checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    chosen = ["--checkpoint", checkpoint(model), "--columns", "6", *side]
    ranks = draw("rank", tmp_path / "rank", *chosen)
    assert all(1 <= float(row["rank of logits"]) <= 6 for row in ranks)
    assert all(1 <= int(row["rank of position part"]) <= 6 for row in ranks)
    cells = draw("patterns", tmp_path / "patterns", *chosen)
    assert len(cells) == len(ranks) * 6 * 6
    by_distance = {(c["head"], int(c["key"]) - int(c["query"]), round(float(c["value"]), 5)) for c in cells}
    depends_on_distance = len(by_distance) == len({place[:2] for place in by_distance})
    assert depends_on_distance == (model == "memory")  # the translation model also adds learned vectors


def test_a_side_is_chosen_and_may_have_no_position_part(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    chosen = ["--checkpoint", checkpoint("translation")]
    assert draw("embedding-heat-map", tmp_path / "heat-map", *chosen)
    assert draw("cosine", tmp_path / "cosine", "--checkpoint", checkpoint("masked"))
    rows = draw("mean-attention", tmp_path / "decoder", *chosen, "--columns", "3", *DECODER)
    assert all(float(row["weight"]) == 0 for row in rows if int(row["key"]) > int(row["query"]))
    rows = draw("rank", tmp_path / "encoder", *chosen, "--columns", "4")
    assert {row["rank of position part"] for row in rows} == {""}


def test_a_second_segment_is_read_from_its_first_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "load", lambda *_: stack("segments", dim=4, heads=1))
    chosen = ["--checkpoint", "segments.pt", "--columns", "5", "--second-segment"]
    cells = draw("patterns", tmp_path / "two", *chosen, "3")
    by_segments: dict[tuple[bool, bool], set[str]] = {}
    for cell in cells:
        by_segments.setdefault((int(cell["query"]) >= 3, int(cell["key"]) >= 3), set()).add(cell["value"])
    assert [len(values) for values in by_segments.values()] == [1] * 4
    assert len(set.union(*by_segments.values())) == 4
    all_second = draw("patterns", tmp_path / "one", *chosen, "0")
    assert {cell["value"] for cell in all_second} == by_segments[True, True]


# -- reading checkpoints and texts -------------------------------------------------------------------------------


def test_weights_need_no_dictionary(checkpoint: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [checkpoint(model) for model in ("masked", "memory", "translation")]
    expected = [load(path) for path in paths]

    def missing(_: Any, path: str) -> None:
        raise FileNotFoundError(2, "No such file or directory", path)

    monkeypatch.setattr("fairseq.data.Dictionary.add_from_file", missing)
    for path, whole in zip(paths, expected, strict=True):
        loaded = load(path)
        assert loaded.task is None
        assert loaded.title == whole.title
        same = zip(loaded.model.parameters(), whole.model.parameters(), strict=True)
        assert all(torch.equal(ours, theirs) for ours, theirs in same)
    with pytest.raises(ValueError, match=r"This figure reads text\. Set --data to the folder with the dictionary"):
        next(on_text(loaded, "valid", 1, 1))


def test_figures_from_another_folder_find_the_text(
    checkpoint: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint holds the path of its data relative to the folder in which the training ran."""
    state = safe_load(checkpoint("masked"))
    shutil.copytree(state["cfg"]["task"]["data"], tmp_path / "run" / "data" / "shard")
    state["cfg"]["task"]["data"] = "../run/data/shard"
    path = tmp_path / "run" / "checkpoints" / "m4" / "checkpoint_last.pt"
    path.parent.mkdir(parents=True)
    torch.save(state, path)
    assert Path(load(path).task.cfg.data) == tmp_path / "run" / "data" / "shard"
    monkeypatch.setattr("fairseq_posenc.compat.checkpoints.settings_of", lambda *_: {"data": "nowhere"})
    assert load(path).task is None


def test_the_attention_is_that_of_the_model(
    checkpoint: Callable[[str], Path], recwarn: pytest.WarningsRecorder
) -> None:
    """The first text is the shortest, and torch's warning about pinned memory is hidden."""
    loaded = load(checkpoint("translation"), side="encoder")
    seen = next(on_text(loaded, "valid", 1, 2))
    assert [item.message for item in recwarn if "pin_memory" in str(item.message)] == []
    dataset = loaded.task.dataset("valid")
    batches = loaded.task.get_batch_iterator(dataset, max_sentences=1, required_batch_size_multiple=1)
    sample = next(batches.next_epoch_itr(shuffle=False))
    states = loaded.model.encoder(**{key: sample["net_input"][key] for key in ("src_tokens", "src_lengths")})
    assert seen.logits.shape[-1] == states["encoder_out"][0].shape[0]
    torch.testing.assert_close(seen.weights, seen.logits.softmax(-1))
    assert loaded.attention[1].watch is None


def test_texts_that_are_too_short_are_skipped(checkpoint: Callable[[str], Path]) -> None:
    """The batches begin with the shortest texts, and the longest are still read."""
    loaded = load(checkpoint("translation"), side="decoder")
    (shortest,) = on_text(loaded, "valid", 1, 1)
    longest = max(seen.logits.shape[-2] for seen in on_text(loaded, "valid", 1000, 1))
    assert shortest.logits.shape[-2] < longest
    assert {seen.logits.shape[-2] for seen in on_text(loaded, "valid", 1, 1, longest)} == {longest}


def write_texts(path: Path, sizes: list[int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    builder = make_builder(f"{path}.bin", "mmap", 10)
    for size in sizes:
        builder.add_item(torch.full((size,), 5))
    builder.finalize(f"{path}.idx")


def test_lengths_are_counted_by_language_or_pair(tmp_path: Path) -> None:
    """As in Figure 4 of the LFHC/GCDF paper, the texts of a pair are one input, and --data may be repeated."""
    data = tmp_path / "data"
    texts = {"valid.en-de.en": [2, 4, 4], "valid.en-de.de": [3, 3, 3], "valid1.en-de.en": [9], "train.en-de.en": [9]}
    for name, sizes in texts.items():
        write_texts(data / name, sizes)
    counted: dict[str, list[tuple[int, int]]] = {}
    for row in draw("lengths", tmp_path / "out", "--data", data, "--split", "valid"):
        counted.setdefault(row["data"], []).append((int(row["texts"]), int(row["pairs"])))
    assert list(counted) == ["valid.en-de.de", "valid.en-de.en"]
    assert counted["valid.en-de.en"] == [(0, 10), (0, 7), (1, 4), (0, 2), (2, 0)]
    for name, sizes in {"pairs/input0": [2, 4], "pairs/input1": [3, 3], "single/input0": [5, 5]}.items():
        write_texts(tmp_path / name / "train", sizes)
    rows = draw("lengths", tmp_path / "two", "--data", tmp_path / "pairs", "--data", tmp_path / "single")
    lengths = {(row["data"], row["length or distance"]) for row in rows if row["texts"] != "0"}
    assert lengths == {("pairs train", "5"), ("pairs train", "7"), ("single train", "5")}


def test_every_figure_is_on_the_page() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reports-and-figures.md").read_text(encoding="utf-8")
    assert [name for name, kind in figures.KINDS.items() if f"| `{name}` | {kind.paper} |" not in page] == []
