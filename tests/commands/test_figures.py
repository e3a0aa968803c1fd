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


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return checkpoints of a masked language model, a language model with memory and a translation model."""
    folder = tmp_path_factory.mktemp("figures")
    words = ["--pos-enc", "learned+diet-abs", "--max-update", "2"]
    trainings: dict[str, tuple[Any, list[str]]] = {
        "masked": (masked_lm, words),
        "memory": (lm, ["--pos-enc", "t5", "--max-update", "2"]),
        "translation": (support, ["--pos-enc-encoder", "m4", "--pos-enc-decoder", "learned+t5", "--max-update", "2"]),
    }
    for name, (module, arguments) in trainings.items():
        module.train(module.write_corpus(folder / name), *arguments, "--save-dir", folder / f"{name}-saved")
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


def test_ranks_of_random_weights_need_no_model(tmp_path: Path) -> None:
    assert draw("rank", tmp_path, "--columns", "40")
    ranks = draw("rank", tmp_path / "wider", "--columns", "80", "--rank", "64")
    assert {row["rank of position part"] for row in ranks} == {"32", "64"}


def test_gradients_need_no_model(tmp_path: Path) -> None:
    assert len(draw("gradients", tmp_path, "--columns", "8")) == 2 * 8


def test_the_rank_of_a_checkpoint_is_its_own(checkpoints: dict[str, Path], tmp_path: Path, capsys: Any) -> None:
    words = ["--checkpoint", str(checkpoints["masked"]), "--rank", "8", "--output", str(tmp_path)]
    assert figures.main(["rank", *words]) == 1
    assert "--rank: the checkpoint decides the rank" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("mean-attention", ["--columns", "8"]),
        ("rank", ["--columns", "16"]),
        ("cosine", []),
        ("patterns", ["--columns", "6"]),
    ],
)
def test_figures_of_a_masked_language_model(
    name: str, arguments: list[str], checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    assert draw(name, tmp_path, "--checkpoint", checkpoints["masked"], *arguments)


def test_figures_of_weights_need_no_dictionary(
    checkpoints: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """As for a checkpoint of a training with a relative path of its data, which is read from another folder."""
    expected = {model: load(path) for model, path in checkpoints.items()}
    monkeypatch.setattr("fairseq.data.Dictionary.add_from_file", missing)
    for model, path in checkpoints.items():
        stack = load(path)
        assert stack.task is None
        assert stack.title == expected[model].title
        same = zip(stack.model.parameters(), expected[model].model.parameters(), strict=True)
        assert all(torch.equal(ours, theirs) for ours, theirs in same)
    words = ["mean-attention", "--output", str(tmp_path), "--checkpoint", str(checkpoints["masked"])]
    assert figures.main(words) == 1
    assert "This figure reads text. Set --data to the folder with the dictionary" in capsys.readouterr().err


def test_figures_from_another_folder_find_the_text(
    checkpoints: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint holds the path of its data relative to the folder in which the training ran."""
    state = safe_load(checkpoints["masked"])
    data = Path(state["cfg"]["task"]["data"])
    shutil.copytree(data, tmp_path / "run" / "data" / "shard")
    state["cfg"]["task"]["data"] = "../run/data/shard"
    path = tmp_path / "run" / "checkpoints" / "m4" / "checkpoint_last.pt"
    path.parent.mkdir(parents=True)
    torch.save(state, path)
    assert Path(load(path).task.cfg.data) == tmp_path / "run" / "data" / "shard"
    monkeypatch.setattr("fairseq_posenc.compat.checkpoints.settings_of", lambda *_: {"data": "nowhere"})
    assert load(path).task is None


def missing(_: Any, path: str) -> None:
    raise FileNotFoundError(2, "No such file or directory", path)


def test_no_warning_of_torch_is_shown(checkpoints: dict[str, Path], recwarn: pytest.WarningsRecorder) -> None:
    next(on_text(load(checkpoints["masked"]), "valid", 1, 1))
    assert [item.message for item in recwarn if "pin_memory" in str(item.message)] == []


@pytest.mark.parametrize("model", ["memory", "translation"])
def test_figures_of_other_models(model: str, checkpoints: dict[str, Path], tmp_path: Path) -> None:
    rows = draw("mean-attention", tmp_path, "--checkpoint", checkpoints[model], "--columns", "4")
    by_query = [sum(float(row["weight"]) for row in rows if row["query"] == str(query)) for query in range(4)]
    assert all(0 < total <= 1.0001 for total in by_query)
    draw("embedding-heat-map", tmp_path / "heat", "--checkpoint", checkpoints[model])


@pytest.mark.parametrize(("model", "side"), [("memory", []), ("translation", ["--side", "decoder"])])
def test_ranks_and_patterns_of_decoders(
    model: str, side: list[str], checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    chosen = ["--checkpoint", checkpoints[model], "--columns", "6", *side]
    ranks = draw("rank", tmp_path / "rank", *chosen)
    assert all(1 <= float(row["rank of logits"]) <= 6 for row in ranks)
    assert all(1 <= int(row["rank of position part"]) <= 6 for row in ranks)
    cells = draw("patterns", tmp_path / "patterns", *chosen)
    assert len(cells) == len(ranks) * 6 * 6
    by_distance: dict[tuple[str, int], set[float]] = {}
    for cell in cells:
        place = cell["head"], int(cell["key"]) - int(cell["query"])
        by_distance.setdefault(place, set()).add(round(float(cell["value"]), 5))
    depends_on_distance = all(len(values) == 1 for values in by_distance.values())
    assert depends_on_distance == (model == "memory")  # the translation model also adds learned vectors


def test_ranks_of_an_encoding_without_position_part(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    rows = draw("rank", tmp_path, "--checkpoint", checkpoints["translation"], "--columns", "4")
    assert {row["rank of position part"] for row in rows} == {""}


def test_cosines_of_a_decoder(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    chosen = ["--checkpoint", checkpoints["translation"], "--side", "decoder", "--columns", "9"]
    rows = draw("cosine", tmp_path, *chosen)
    assert sum(int(row["pairs"]) for row in rows) == 9 * 8 / 2


def test_the_weights_are_those_of_the_model(checkpoints: dict[str, Path]) -> None:
    """The second layer of the translation model, which returns its own attention weights."""
    stack = load(checkpoints["translation"])
    (seen,) = on_text(stack, "valid", 1, 2)
    batches = stack.task.get_batch_iterator(
        stack.task.dataset("valid"), max_sentences=1, required_batch_size_multiple=1
    )
    sample = next(batches.next_epoch_itr(shuffle=False))
    states = stack.model.encoder(**{key: sample["net_input"][key] for key in ("src_tokens", "src_lengths")})
    assert seen.logits.shape[-1] == states["encoder_out"][0].shape[0]
    torch.testing.assert_close(seen.weights, seen.logits.softmax(-1))
    assert stack.attention[1].watch is None


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_texts_that_are_too_short_are_skipped(side: str, checkpoints: dict[str, Path]) -> None:
    """The batches begin with the shortest texts, and the longest are still read."""
    stack = load(checkpoints["translation"], side=side)
    (shortest,) = on_text(stack, "valid", 1, 1)
    everything = list(on_text(stack, "valid", 1000, 1))
    longest = max(seen.logits.shape[-2] for seen in everything)
    assert shortest.logits.shape[-2] < longest
    assert {seen.logits.shape[-2] for seen in on_text(stack, "valid", 1, 1, longest)} == {longest}


def test_a_decoder_is_chosen_by_its_side(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    arguments = ["--checkpoint", checkpoints["translation"], "--columns", "3", "--side", "decoder"]
    rows = draw("mean-attention", tmp_path, *arguments)
    assert all(float(row["weight"]) == 0 for row in rows if int(row["key"]) > int(row["query"]))


def test_what_a_model_lacks_is_named(checkpoints: dict[str, Path], tmp_path: Path, capsys: Any) -> None:
    for name, model, text in (
        ("cosine", "translation", "m4 adds no vectors at the input"),
        ("cosine", "memory", "t5 adds no vectors at the input"),
        ("patterns", "translation", "independent of the tokens"),
        ("mean-attention", "masked", "Lower --columns"),
    ):
        more = ["--columns", "500"] if name == "mean-attention" else []
        words = [name, "--output", str(tmp_path), "--checkpoint", str(checkpoints[model]), *more]
        assert figures.main(words) == 1
        assert text in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_second_segment_is_read_from_its_first_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "load", lambda *_: stack("segments", dim=4, heads=1))
    chosen = ["--checkpoint", "segments.pt", "--columns", "5", "--second-segment"]
    cells = draw("patterns", tmp_path / "two", *chosen, "3")
    by_segments: dict[tuple[bool, bool], set[str]] = {}
    for cell in cells:
        by_segments.setdefault((int(cell["query"]) >= 3, int(cell["key"]) >= 3), set()).add(cell["value"])
    assert len(by_segments) == 4
    assert all(len(values) == 1 for values in by_segments.values())
    assert len(set.union(*by_segments.values())) == 4
    all_second = draw("patterns", tmp_path / "one", *chosen, "0")
    assert {cell["value"] for cell in all_second} == by_segments[True, True]


def test_a_second_segment_of_a_model_without_segments_is_refused(
    checkpoints: dict[str, Path], tmp_path: Path, capsys: Any
) -> None:
    words = ["patterns", "--output", str(tmp_path), "--checkpoint", str(checkpoints["masked"]), "--second-segment", "3"]
    assert figures.main(words) == 1
    assert "learned+diet-abs does not read segments. Leave out --second-segment" in capsys.readouterr().err


# -- lengths of prepared data --------------------------------------------------------------------------------


def write_texts(path: Path, sizes: list[int]) -> None:
    builder = make_builder(f"{path}.bin", "mmap", 10)
    for size in sizes:
        builder.add_item(torch.full((size,), 5))
    builder.finalize(f"{path}.idx")


def test_lengths_of_both_languages_are_counted(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    texts = {"valid.en-de.en": [2, 4, 4], "valid.en-de.de": [3, 3, 3], "valid1.en-de.en": [9], "train.en-de.en": [9]}
    for name, sizes in texts.items():
        write_texts(data / name, sizes)
    rows = draw("lengths", tmp_path / "out", "--data", data, "--split", "valid")
    counted = {
        name: [row for row in rows if row["data"] == name] for name in dict.fromkeys(row["data"] for row in rows)
    }
    assert list(counted) == ["valid.en-de.de", "valid.en-de.en"]
    english = [(int(row["texts"]), int(row["pairs"])) for row in counted["valid.en-de.en"]]
    assert english == [(0, 10), (0, 7), (1, 4), (0, 2), (2, 0)]
    assert [int(row["texts"]) for row in counted["valid.en-de.de"]] == [0, 0, 0, 3]


def test_lengths_of_several_data_sets_and_of_pairs(tmp_path: Path) -> None:
    """As in Figure 4 of the LFHC/GCDF paper: the texts of a pair are one input, and --data may be repeated."""
    for name, texts in {"pairs": [[2, 4], [3, 3]], "single": [[5, 5]]}.items():
        for number, sizes in enumerate(texts):
            (folder := tmp_path / name / f"input{number}").mkdir(parents=True)
            write_texts(folder / "train", sizes)
    rows = draw("lengths", tmp_path / "out", "--data", tmp_path / "pairs", "--data", tmp_path / "single")
    counted = {(row["data"], row["length or distance"]) for row in rows if row["texts"] != "0"}
    assert counted == {("pairs train", "5"), ("pairs train", "7"), ("single train", "5")}
    words = ["lengths", *("--data", str(tmp_path / "single")) * 2, "--output", str(tmp_path / "twice")]
    assert figures.main(words) == 1


def test_a_missing_split_is_refused_with_the_known_ones(tmp_path: Path, capsys: Any) -> None:
    for split in ("train", "valid"):
        write_texts(tmp_path / split, [2])
    words = ["lengths", "--data", str(tmp_path), "--split", "test", "--output", str(tmp_path / "out")]
    assert figures.main(words) == 1
    assert f"{tmp_path} has no split test. Choose one with --split: train, valid." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["cosine"], "--checkpoint FILE"),
        (["lengths"], "--data DIR"),
        (["lengths", "--data", "nowhere"], "has no split train"),
        (["embedding-heat-map", "--checkpoint", "nowhere.pt"], "nowhere.pt"),
        (["cosine", "--checkpoint", "x.pt", "--data", "a", "--data", "b"], "--data is given 2 times"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], text: str, tmp_path: Path, capsys: Any) -> None:
    assert figures.main([*arguments, "--output", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["lengths", "--head", "2"], "--head has no effect on lengths, which reads only --data, --split"),
        (["patterns", "--layer", "0"], "the number must be at least 1"),
        (["patterns", "--layer", "1", "--layer", "2"], "--layer is given twice, but takes one value"),
        (["no-such-figure"], "invalid choice"),
    ],
)
def test_options_without_effect_are_refused(arguments: list[str], text: str, tmp_path: Path, capsys: Any) -> None:
    with pytest.raises(SystemExit, match="2"):
        figures.main([*arguments, "--output", str(tmp_path)])
    assert text in capsys.readouterr().err


def test_every_figure_of_the_issue_is_there_and_tested() -> None:
    tested = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in figures.KINDS if f'"{name}"' not in tested] == []


def test_the_page_has_a_row_for_every_figure() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reports-and-figures.md").read_text(encoding="utf-8")
    for name, kind in figures.KINDS.items():
        assert f"| `{name}` | {kind.paper} |" in page
