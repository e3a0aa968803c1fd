"""Test the benchmark of translation, in which our models and stock fairseq run on a tiny corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from integration import support

from fairseq_posenc.commands.bench import targets, translation
from fairseq_posenc.commands.bench.settings import Setting, Subject

from .scene import CPU


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return support.write_corpus(tmp_path_factory.mktemp("bench") / "data-bin")


def test_training_and_decoding_have_a_row_each(run: Any, data: Path) -> None:
    arguments = (
        "--translation",
        str(data),
        "--encodings",
        "t5",
        "linformer:slots=8",
        "segments",
        "m4:reset=vector",
        "--rounds",
        "1",
    )
    _, rows = run("--parts", "translation", *arguments)
    assert [(row["encoding"], row["mode"]) for row in rows] == [
        (name, mode) for mode in ("train", "infer") for name in ("t5", "linformer")
    ]
    assert all(row["ratio"] > 0 and row["target"] and row["length"] in (2048, 15) for row in rows)


def test_every_translation_has_the_same_length(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairseq.tasks.translation import TranslationTask

    lengths: list[int] = []
    plain = TranslationTask.inference_step

    def recorded(self: Any, *args: Any, **kwargs: Any) -> Any:
        results = plain(self, *args, **kwargs)
        lengths.extend(len(best["tokens"]) for hypotheses in results for best in hypotheses)
        return results

    monkeypatch.setattr(TranslationTask, "inference_step", recorded)
    for subject in (None, Subject("shaw")):
        setting = Setting("translation", "infer", translation.SMALL, translation.WORDS, 128, CPU, layers=3)
        translation.step_of(data, subject, setting)()
    assert len(lengths) == 2 * support.SIZES["test"] * translation.BEAM
    assert set(lengths) == {translation.WORDS + 1}  # and </s>


def test_an_encoder_only_encoding_is_used_in_the_encoder_only() -> None:
    assert translation.flags(Subject("linformer")) == ["--pos-enc", "none", "--pos-enc-encoder", "linformer"]
    assert translation.flags(Subject("shaw", "clip=4")) == ["--pos-enc", "shaw", "--pos-enc-args", "clip=4"]


@pytest.mark.parametrize(
    ("name", "train", "infer"),
    [("t5", 0.97, 1.0), ("tupe", 0.97, 1.0), ("gcdf", 0.9, 0.85), ("deberta", 0.85, 0.7), ("rope", 0.85, 0.85)],
)
def test_targets_are_words_per_second(name: str, train: float, infer: float) -> None:
    limits = [targets.of_translation(name, "", Subject(name).hooks(), mode) for mode in ("train", "infer")]
    assert limits == pytest.approx([1 / train, 1 / infer])


def test_a_missing_folder_is_refused(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("--parts", "translation", "--translation", "nowhere")
    assert "--translation: nowhere is not a folder. Give the output folder" in capsys.readouterr().err
