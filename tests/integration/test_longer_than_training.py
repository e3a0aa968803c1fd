"""Test how the translation recipe decodes sentences beyond a model's positions: it lists those that a table refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fairseq_cli.generate
import pytest
from fairseq import checkpoint_utils, options

from recipes.lib.settings import load
from recipes.lib.stages import Stage
from recipes.lib.translation import measure, score
from recipes.translation_wmt18.__main__ import TRANSLATION
from recipes.translation_wmt18.layout import Place
from recipes.translation_wmt18.models import Models

from . import support
from .support import PLUGIN, SIZES, TINY

POSITIONS = 7
SHORT = ["--max-source-positions", str(POSITIONS), "--max-target-positions", str(POSITIONS), "--max-update", "1"]


def flags() -> list[str]:
    """Return the flags of the recipe's decoding, except for data, subwords and model."""
    options = {"train_longest_words": str(POSITIONS - 1), "train.max-source-positions": str(POSITIONS), "device": "cpu"}
    settings = load(TRANSLATION, "short", texts=options)
    models = Models(settings, settings.directions[0], Place(Path("x"), "x"), Place(Path("x"), "x"))
    command = models.chain(settings.variants[0], Stage("binarise", (), ()))[2].command
    return [*command[command.index("--task") : command.index("--gen-subset")], "--skip-invalid-size-inputs-valid-test"]


def generated(data: Path, path: Path, *languages: str) -> str:
    words = [data, "--user-dir", PLUGIN, *languages, "--path", path, "--cpu", "--required-batch-size-multiple", "1"]
    cfg = support.parse([*words, *flags()], options.get_generation_parser, arch="wav2vec2")
    return support.printed(fairseq_cli.generate.main, cfg)[0]


@pytest.fixture(scope="module")
def texts(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """Return by encoding what fairseq-generate printed, and the checkpoint."""
    outputs = {}
    for name in ("learned", "rope"):
        folder = tmp_path_factory.mktemp(name)
        support.train(data, "--pos-enc", name, *SHORT, "--save-dir", folder, model=TINY)
        (folder / "out").write_text(generated(data, folder / "checkpoint_last.pt", "-s", "en", "-t", "de"))
        outputs[name] = (folder / "out", folder / "checkpoint_last.pt")
    return outputs


def lengths(data: Path) -> list[int]:
    """Return the numbers of words of the test sentences, which are the same on both sides."""
    _, task = support.built(data)
    task.load_dataset("test")
    return [int(size) - 1 for size in task.dataset("test").src_sizes]


def test_a_table_refuses_what_it_has_no_rows_for(data: Path, texts: dict[str, tuple[Path, Path]]) -> None:
    longer = [number for number, words in enumerate(lengths(data)) if words + 1 > POSITIONS]
    assert 0 < len(longer) < SIZES["test"]
    hypotheses = score.hypotheses(texts["learned"][0])
    facts = score.score(hypotheses, ["a b"] * SIZES["test"], may_refuse=True)
    assert facts["refused"] == longer
    assert facts["bleu"] is None
    assert sorted(score.hypotheses(texts["rope"][0])) == list(range(SIZES["test"]))


def test_the_positions_of_a_model_are_known(texts: dict[str, tuple[Path, Path]]) -> None:
    for name, limits in (("learned", [POSITIONS, POSITIONS]), ("rope", [None, None])):
        models, _, _ = checkpoint_utils.load_model_ensemble_and_task([str(texts[name][1])])
        assert measure.positions(models[0]) == limits


def test_the_other_direction_reads_the_same_data(
    data: Path, texts: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    """The quality of the translations does not matter here."""
    (tmp_path / "out").write_text(generated(data, texts["rope"][1], "-s", "de", "-t", "en"))
    assert len(score.hypotheses(tmp_path / "out")) == SIZES["test"]


def test_models_are_timed_on_hypotheses_of_one_length(texts: dict[str, tuple[Path, Path]], trained: Path) -> None:
    outputs: list[Any] = []
    for path in (texts["rope"][1], trained / "checkpoint_last.pt"):
        model = measure.load(path, ["--beam", "3", "--max-len-b", "20", "--sampling"])
        assert model.config.generation.sampling
        batch = measure.middle_batch(model.config, model.task)
        translate = model.task.inference_step
        model.task.inference_step = lambda *words, translate=translate: outputs.extend(translate(*words))
        measure.translation_step(model, batch)()
    references = [int(row.ne(1).sum()) for row in batch["target"]]  # id 1 is padding
    assert {len(beams) for beams in outputs} == {3}
    assert {len(best["tokens"]) for beams in outputs for best in beams} == {round(sum(references) / len(references))}
