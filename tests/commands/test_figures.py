"""Test `figures`: every figure is drawn from its checkpoints or data, and errors name missing ones."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.data.indexed_dataset import make_builder
from integration import lm, masked_lm, support
from support_analysis import stack

from fairseq_posenc.analysis.trained import load, on_text
from fairseq_posenc.commands import figures
from fairseq_posenc.compat import safe_load

DECODER = ["--side", "decoder"]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return checkpoints of a masked language model, a language model with memory and a translation model."""
    folder = tmp_path_factory.mktemp("figures")
    trainings: dict[str, tuple[Any, list[str]]] = {
        "masked": (masked_lm, ["--pos-enc", "learned+diet-abs"]),
        "memory": (lm, ["--pos-enc", "t5"]),
        "translation": (support, ["--pos-enc-encoder", "m4", "--pos-enc-decoder", "learned+t5"]),
    }
    for name, (module, words) in trainings.items():
        saved = ["--max-update", "2", "--save-dir", folder / f"{name}-saved"]
        module.train(module.write_corpus(folder / name), *words, *saved)
    return {name: folder / f"{name}-saved" / "checkpoint_last.pt" for name in trainings}


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
    model: str, side: list[str], checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    chosen = ["--checkpoint", checkpoints[model], "--columns", "6", *side]
    ranks = draw("rank", tmp_path / "rank", *chosen)
    assert all(1 <= float(row["rank of logits"]) <= 6 for row in ranks)
    assert all(1 <= int(row["rank of position part"]) <= 6 for row in ranks)
    cells = draw("patterns", tmp_path / "patterns", *chosen)
    assert len(cells) == len(ranks) * 6 * 6
    by_distance = {(c["head"], int(c["key"]) - int(c["query"]), round(float(c["value"]), 5)) for c in cells}
    depends_on_distance = len(by_distance) == len({place[:2] for place in by_distance})
    assert depends_on_distance == (model == "memory")  # the translation model also adds learned vectors


def test_a_side_is_chosen_and_may_have_no_position_part(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    chosen = ["--checkpoint", checkpoints["translation"]]
    assert draw("embedding-heat-map", tmp_path / "heat-map", *chosen)
    assert draw("cosine", tmp_path / "cosine", "--checkpoint", checkpoints["masked"])
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


def test_weights_need_no_dictionary(checkpoints: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {model: load(path) for model, path in checkpoints.items()}

    def missing(_: Any, path: str) -> None:
        raise FileNotFoundError(2, "No such file or directory", path)

    monkeypatch.setattr("fairseq.data.Dictionary.add_from_file", missing)
    for model, path in checkpoints.items():
        loaded = load(path)
        assert loaded.task is None
        assert loaded.title == expected[model].title
        same = zip(loaded.model.parameters(), expected[model].model.parameters(), strict=True)
        assert all(torch.equal(ours, theirs) for ours, theirs in same)
    with pytest.raises(ValueError, match=r"This figure reads text\. Set --data to the folder with the dictionary"):
        next(on_text(loaded, "valid", 1, 1))


def test_figures_from_another_folder_find_the_text(
    checkpoints: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint holds the path of its data relative to the folder in which the training ran."""
    state = safe_load(checkpoints["masked"])
    shutil.copytree(state["cfg"]["task"]["data"], tmp_path / "run" / "data" / "shard")
    state["cfg"]["task"]["data"] = "../run/data/shard"
    path = tmp_path / "run" / "checkpoints" / "m4" / "checkpoint_last.pt"
    path.parent.mkdir(parents=True)
    torch.save(state, path)
    assert Path(load(path).task.cfg.data) == tmp_path / "run" / "data" / "shard"
    monkeypatch.setattr("fairseq_posenc.compat.checkpoints.settings_of", lambda *_: {"data": "nowhere"})
    assert load(path).task is None


def test_the_attention_is_that_of_the_model(checkpoints: dict[str, Path], recwarn: pytest.WarningsRecorder) -> None:
    """The first text is the shortest, and torch's warning about pinned memory is hidden."""
    loaded = load(checkpoints["translation"], side="encoder")
    seen = next(on_text(loaded, "valid", 1, 2))
    assert [item.message for item in recwarn if "pin_memory" in str(item.message)] == []
    dataset = loaded.task.dataset("valid")
    batches = loaded.task.get_batch_iterator(dataset, max_sentences=1, required_batch_size_multiple=1)
    sample = next(batches.next_epoch_itr(shuffle=False))
    states = loaded.model.encoder(**{key: sample["net_input"][key] for key in ("src_tokens", "src_lengths")})
    assert seen.logits.shape[-1] == states["encoder_out"][0].shape[0]
    torch.testing.assert_close(seen.weights, seen.logits.softmax(-1))
    assert loaded.attention[1].watch is None


def test_texts_that_are_too_short_are_skipped(checkpoints: dict[str, Path]) -> None:
    """The batches begin with the shortest texts, and the longest are still read."""
    loaded = load(checkpoints["translation"], side="decoder")
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


# -- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("cosine", "--checkpoint FILE"),
        ("cosine --checkpoint {translation}", "m4 adds no vectors at the input"),
        ("embedding-heat-map --checkpoint nowhere.pt", "nowhere.pt"),
        ("mean-attention --checkpoint {masked} --columns 500", "Lower --columns"),
        ("patterns --checkpoint {translation}", "independent of the tokens"),
        ("patterns --checkpoint {masked} --second-segment 3", "does not read segments. Leave out --second-segment"),
        ("lengths --data nowhere", "has no split train"),
        ("lengths --data {data} --data {data}", "two folders are named data"),
    ],
)
def test_bad_input_is_one_line(
    words: str, text: str, checkpoints: dict[str, Path], tmp_path: Path, capsys: Any
) -> None:
    write_texts(tmp_path / "data" / "train", [2])
    arguments = words.format(**checkpoints, data=tmp_path / "data").split()
    assert figures.main([*arguments, "--output", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\nfigures:") + error.startswith("figures:") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("lengths --head 2", "--head has no effect on lengths, which reads only --data, --split"),
        ("patterns --layer 1 --layer 2", "--layer is given twice, but takes one value"),
    ],
)
def test_options_without_effect_are_refused(words: str, text: str, tmp_path: Path, capsys: Any) -> None:
    with pytest.raises(SystemExit, match="2"):
        figures.main([*words.split(), "--output", str(tmp_path)])
    assert text in capsys.readouterr().err


def test_every_figure_is_on_the_page() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reports-and-figures.md").read_text(encoding="utf-8")
    assert [name for name, kind in figures.KINDS.items() if f"| `{name}` | {kind.paper} |" not in page] == []
