"""Test posenc_roberta_pretrained and posenc_sentence_prediction: weights, segments, refused options, and learning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from integration import support
from support_exchange import imported, random_model, saved
from support_glue import FILES, prepare, task_files

from fairseq_posenc.criterions.sentence_prediction import PosEncSentencePredictionCriterion
from fairseq_posenc.hub.model import ModelConfig
from fairseq_posenc.models.finetuning import encoding

TASK = """--task posenc_sentence_prediction --criterion posenc_sentence_prediction --init-token 0 --separator-token 2
    --arch posenc_roberta_pretrained --optimizer adam --lr 0.01 --batch-size 8 --cpu --log-format none --num-workers 0
    --data-buffer-size 0 --required-batch-size-multiple 1 --seed 1""".split()
WORDS = ["w3 w4", "w5 w4"]


class Scene:
    """Provide pretrained models by encoding, and GLUE's tasks in the pieces of these models."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bert = saved(random_model("bert", "tiny"), folder / "bert")

    def model(self, name: str, *args: str) -> Path:
        out = self.folder / "-".join([name, *args])
        if not out.exists():
            imported(self.bert, out, "--pos-enc", name, *args)
        return out / "checkpoint.pt"

    def data(self, task: str) -> Path:
        out = self.folder / f"{task}.data"
        if not out.exists():
            changed = {"train": _toy(FILES[task]["train.tsv"][0])} if task == "SST-2" else {}
            task_files(self.folder / task, task, **changed)
            assert prepare(task, self.folder, self.model("shaw"), out) == 0
        return out

    def words(self, task: str, model: Path, *more: str, classes: int = 2) -> list[str]:
        return [
            *(str(self.data(task)), "--user-dir", str(support.PLUGIN), *TASK, "--pretrained", str(model)),
            *("--num-classes", str(classes), "--no-save", "--disable-validation", *more),
        ]

    def built(self, task: str, model: Path, *more: str, **options: Any) -> tuple[Any, Any]:
        return support.built_of(self.words(task, model, *more, **options), seed=2)


def _toy(header: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return rows whose label says which of two words comes first."""
    return [header, *((WORDS[number % 2] + f" w{number % 7 + 6}", str(number % 2)) for number in range(64))]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene(tmp_path_factory.mktemp("finetuning"))


@torch.no_grad()
def features(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    return model(tokens, features_only=True)[0]


PAIR = torch.tensor([[0, 9, 10, 2, 2, 11, 2], [0, 9, 2, 2, 12, 2, 1]])


def test_items_that_the_model_has_no_positions_for_are_refused(scene: Scene, tmp_path: Path) -> None:
    """Otherwise, fairseq-train would leave such items out of training, and fail at the first one in validation."""
    learned, shaw = scene.model("learned"), scene.model("shaw")
    long = [FILES["SST-2"]["train.tsv"][0], (" ".join(["w3"] * 40), "0"), ("w3", "1")]
    task_files(tmp_path / "SST-2", "SST-2", train=long)
    extended = ("--pos-enc-args", "extend=interpolate,extend_to=42")
    assert prepare("SST-2", tmp_path, learned, tmp_path / "cut", "--length", "20") == 0
    assert prepare("SST-2", tmp_path, shaw, tmp_path / "whole", "--length", "512") == 0
    for data, more in (("cut", ()), ("whole", extended)):
        support.built_of([str(tmp_path / data), *scene.words("SST-2", learned, *more)[1:]], seed=2)
    with pytest.raises(ValueError, match="items have up to 42 pieces, but learned"):
        support.built_of([str(tmp_path / "whole"), *scene.words("SST-2", learned)[1:]], seed=2)


# --- the model


def test_a_model_starts_as_it_was_pretrained(scene: Scene) -> None:
    """The fine-tuned model has the sizes, the encoding, the options and the weights of the pretrained model."""
    path = scene.model("shaw", "--pos-enc-args", "clip=4")
    model, _ = scene.built("RTE", path)
    state = torch.load(path, weights_only=True)["model"]
    for name, weight in model.state_dict().items():
        new = name.startswith("classification_heads.") or name.endswith("version")
        assert new or torch.equal(weight, state[name]), name
    assert str(model.encoder.sentence_encoder.pos).startswith("shaw(clip=4,")
    assert not any(p.requires_grad for p in model.encoder.lm_head.dense.parameters())
    assert model.encoder.sentence_encoder.embed_tokens.weight.requires_grad


def test_segments_per_head_are_made_at_zero_and_those_at_the_input_are_not(scene: Scene) -> None:
    path = scene.model("shaw")
    plain, _ = scene.built("RTE", path)
    head, _ = scene.built("RTE", path, "--segments", "head")
    both, _ = scene.built("RTE", path, "--segments", "input")
    assert torch.equal(features(plain, PAIR), features(head, PAIR))
    assert not torch.allclose(features(plain, PAIR), features(both, PAIR))
    head.encoder.sentence_encoder.pos.segments.weight.data[..., 0, 1] = 3.0
    moved = features(head, PAIR)
    assert not torch.allclose(features(plain, PAIR), moved)
    assert torch.equal(features(plain, PAIR[:1, :4]), features(head, PAIR[:1, :4]))  # one sentence, one segment


def test_what_is_made_anew_differs_between_seeds(scene: Scene) -> None:
    """So the median over several runs also covers their different initial weights."""
    words = scene.words("RTE", scene.model("shaw"), "--segments", "input")
    models = [support.built_of(words, seed=seed)[0] for seed in (1, 2)]
    once, other = [model.encoder.sentence_encoder.pos.members["segments-input"].weight for model in models]
    assert not torch.allclose(once, other)


def config(name: str, args: str | None = None) -> ModelConfig:
    return ModelConfig(layers=1, dim=8, ffn=8, heads=2, max_length=16, vocabulary=20, pos_enc=name, pos_enc_args=args)


@pytest.mark.parametrize(
    ("own", "given", "segments", "expected"),
    [
        (("shaw", "clip=4,share=none"), (None, None), "none", ("shaw", "shaw.clip=4,shaw.share=none")),
        (
            ("shaw", "clip=4,share=none"),
            (None, "segments.share=layer-wise"),
            "head",
            ("shaw+segments", "shaw.clip=4,shaw.share=none,segments.share=layer-wise"),
        ),
        (("shaw", "clip=4,share=none"), (None, "clip=8"), "none", ("shaw", "shaw.clip=8,shaw.share=none")),
        (("shaw", "clip=4"), ("rope", None), "head", ("rope+segments", None)),
        (("learned+segments-input", None), (None, None), "input", ("learned+segments-input", None)),
        # Segments are shared as the position table is, in DIET-ABS and DIET-REL (Chen et al. 2021).
        (("diet-abs", None), (None, None), "head", ("diet-abs+segments", "segments.share=layer-wise")),
        (("diet-abs", None), (None, "segments.share=none"), "head", ("diet-abs+segments", "segments.share=none")),
        (("diet-rel", None), (None, None), "head", ("diet-rel+segments", None)),
        (
            ("diet-rel", "share=head-wise"),
            (None, None),
            "head",
            ("diet-rel+segments", "diet_rel.share=head-wise,segments.share=head-wise"),
        ),
    ],
)
def test_options_of_the_pretrained_model_hold_beside_segments(
    own: tuple[str, str | None], given: tuple[str | None, str | None], segments: str, expected: tuple[str, str | None]
) -> None:
    assert encoding(config(*own), *given, segments) == expected


def test_segments_in_two_ways_are_refused() -> None:
    with pytest.raises(ValueError, match="--segments head: the model already has segments-input"):
        encoding(config("learned+segments-input"), None, None, "head")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--encoder-layers", "3"], "--encoder-layers 3: the model of --pretrained .* has 1. Leave the option out"),
        (["--max-positions", "99"], "--max-positions 99: the model of --pretrained .* has 20"),
        (["--encoder-normalize-before"], "--encoder-normalize-before True"),
        (["--pos-enc-args", "clips=3"], "no option clips"),
        (["--report-mcc"], "--metrics chooses the scores"),
        (["--metrics", "pearson"], "--metrics pearson: classification has no score of this name"),
    ],
)
def test_what_contradicts_the_model_is_refused(scene: Scene, more: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        support.trained(scene.words("RTE", scene.model("shaw"), *more))


def test_without_a_pretrained_model_there_is_none(scene: Scene) -> None:
    words = scene.words("RTE", scene.model("shaw"))
    at = words.index("--pretrained")
    with pytest.raises(ValueError, match="--arch posenc_roberta_pretrained needs --pretrained"):
        support.built_of(words[:at] + words[at + 2 :], seed=1)


# --- training


def test_a_toy_is_learned_and_the_checkpoint_stands_alone(scene: Scene, tmp_path: Path) -> None:
    from fairseq import checkpoint_utils

    words = scene.words("SST-2", scene.model("shaw"), "--metrics", "accuracy,f1", "--max-epoch", "4")
    words = [word for word in words if word not in ("--no-save", "--disable-validation")]
    words += ["--save-dir", str(tmp_path), "--best-checkpoint-metric", "score", "--maximize-best-checkpoint-metric"]
    run = support.trained(words)
    assert sum(run.losses[-4:]) < 0.3 * sum(run.losses[:4])
    models, _, _ = checkpoint_utils.load_model_ensemble_and_task([str(tmp_path / "checkpoint_best.pt")])
    loaded, expected = models[0].eval().state_dict(), run.model.state_dict()
    last = checkpoint_utils.load_model_ensemble_and_task([str(tmp_path / "checkpoint_last.pt")])[0][0].state_dict()
    assert all(torch.equal(last[name], expected[name]) for name in expected)
    assert set(loaded) == set(expected)


def test_scores_are_exact_and_of_all_processes() -> None:
    """The lists of two processes are joined; fairseq's own criterion would add them like numbers."""
    from fairseq.logging import metrics

    def logged(predictions: list[int], targets: list[int]) -> dict[str, Any]:
        size = {"loss": torch.tensor(1.0), "nsentences": 3, "ntokens": 9, "sample_size": 3}
        return {**size, "predictions": predictions, "targets": targets, "metrics": ["f1", "accuracy"]}

    assert not PosEncSentencePredictionCriterion.logging_outputs_can_be_summed()
    with metrics.aggregate(new_root=True) as both:
        PosEncSentencePredictionCriterion.reduce_metrics([logged([1, 1, 0], [1, 0, 0]), logged([0, 1, 0], [1, 1, 0])])
        PosEncSentencePredictionCriterion.reduce_metrics([logged([1, 0, 0], [1, 1, 1])])
    values = both.get_smoothed_values()
    assert values["score"] == values["f1"] == pytest.approx(100 * 2 * 3 / (2 * 3 + 1 + 3))
    assert values["accuracy"] == pytest.approx(100 * 5 / 9)


def test_regression_learns_numbers(scene: Scene) -> None:
    words = scene.words("STS-B", scene.model("learned"), "--regression-target", "--metrics", "spearman", classes=1)
    run = support.trained([*words, "--max-epoch", "60", "--dropout", "0", "--attention-dropout", "0"])
    assert run.losses[-1] < 0.2 * run.losses[0]


def test_the_tasks_items_are_robertas_or_berts(scene: Scene) -> None:
    words = scene.words("RTE", scene.model("shaw"))
    _, task = support.built_of(words, seed=1)
    (batch,) = support.batches(task, "valid", longest=None)
    names = [task.source_dictionary[number] for number in batch["net_input"]["src_tokens"][0].tolist()]
    assert names == ["<s>", "w5", "</s>", "</s>", "w6", "</s>"]
    at = words.index("--separator-token")
    _, task = support.built_of(words[:at] + words[at + 2 :], seed=1)
    (batch,) = support.batches(task, "valid", longest=None)
    assert batch["net_input"]["src_tokens"].shape == (1, 5)
