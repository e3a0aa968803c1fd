"""Test posenc_roberta_pretrained and posenc_sentence_prediction: weights, segments, refused options, and learning."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.logging import metrics
from integration import support
from support_exchange import imported, random_model, saved
from support_glue import FILES, prepare, task_files

from fairseq_posenc.criterions.sentence_prediction import PosEncSentencePredictionCriterion
from fairseq_posenc.hub.model import ModelConfig
from fairseq_posenc.models.finetuning import encoding

TABLE: dict[str, Any] = tomllib.loads(Path(__file__).with_name("finetuning.toml").read_text("utf-8"))
#: Arguments for items in RoBERTa's form, with two separators between sentences.
TASK = """--task posenc_sentence_prediction --criterion posenc_sentence_prediction --arch posenc_roberta_pretrained
    --num-classes 2 --batch-size 8 --init-token 0 --separator-token 2""".split()


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
        """Return the prepared data of a task. The label of SST-2's rows says which of two words comes first."""
        out = self.folder / f"{task}.data"
        if not out.exists():
            rows = [(f"{('w3 w4', 'w5 w4')[row % 2]} w{row % 7 + 6}", str(row % 2)) for row in range(64)]
            changed = {"train": [FILES[task]["train.tsv"][0], *rows]} if task == "SST-2" else {}
            task_files(self.folder / task, task, **changed)
            assert prepare(task, self.folder, self.model("shaw"), out) == 0
        return out

    def words(self, task: str, *more: Any, model: Path | None = None, flags: list[str] = TASK) -> list[str]:
        """Return the arguments of fairseq-train for a task, by default with a pretrained model with shaw."""
        pretrained = ["--pretrained", model or self.model("shaw")]
        return support.command_line(self.data(task), *more, task=flags, model=pretrained)

    def built(self, *words: Any, seed: int = 2, **options: Any) -> tuple[Any, Any]:
        """Return a model that is not trained further, and its task."""
        return support.built_of(self.words(*words, **options), seed)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene(tmp_path_factory.mktemp("finetuning"))


def test_items_that_the_model_has_no_positions_for_are_refused(scene: Scene, tmp_path: Path) -> None:
    """Otherwise, fairseq-train would leave such items out of training, and fail at the first one in validation."""
    learned, shaw = scene.model("learned"), scene.model("shaw")
    long = [FILES["SST-2"]["train.tsv"][0], (" ".join(["w3"] * 40), "0"), ("w3", "1")]
    task_files(tmp_path / "SST-2", "SST-2", train=long)
    assert prepare("SST-2", tmp_path, learned, tmp_path / "cut", "--length", "20") == 0
    assert prepare("SST-2", tmp_path, shaw, tmp_path / "whole", "--length", "512") == 0

    def build(data: str, *more: str) -> None:
        support.built(tmp_path / data, *more, task=TASK, model=["--pretrained", learned])

    build("cut")
    build("whole", "--pos-enc-args", "extend=interpolate,extend_to=42")
    with pytest.raises(ValueError, match="items have up to 42 pieces, but learned"):
        build("whole")


# --- the model


def test_a_model_starts_as_it_was_pretrained(scene: Scene) -> None:
    """The fine-tuned model has the sizes, the encoding, the options and the weights of the pretrained model."""
    path = scene.model("shaw", "--pos-enc-args", "clip=4")
    model, _ = scene.built("RTE", model=path)
    state = torch.load(path, weights_only=True)["model"]
    for name, weight in model.state_dict().items():
        new = name.startswith("classification_heads.") or name.endswith("version")
        assert new or torch.equal(weight, state[name]), name
    assert str(model.encoder.sentence_encoder.pos).startswith("shaw(clip=4,")
    assert not any(p.requires_grad for p in model.encoder.lm_head.dense.parameters())
    assert model.encoder.sentence_encoder.embed_tokens.weight.requires_grad


@torch.no_grad()
def test_segments_per_head_are_made_at_zero_and_those_at_the_input_are_not(scene: Scene) -> None:
    """The weights of segments at the input differ between seeds, so the median over several runs covers them, too."""
    pair = torch.tensor([[0, 9, 10, 2, 2, 11, 2], [0, 9, 2, 2, 12, 2, 1]])
    plain, head = (scene.built("RTE", "--segments", kind)[0] for kind in ("none", "head"))
    first, second = (scene.built("RTE", "--segments", "input", seed=seed)[0] for seed in (1, 2))
    expected = plain(pair, features_only=True)[0]
    assert torch.equal(head(pair, features_only=True)[0], expected)
    assert not torch.allclose(first(pair, features_only=True)[0], expected)
    assert not torch.allclose(first(pair, features_only=True)[0], second(pair, features_only=True)[0])
    head.encoder.sentence_encoder.pos.segments.weight[..., 0, 1] = 3.0
    moved = head(pair, features_only=True)[0]
    assert not torch.allclose(moved, expected)
    single = pair[:1, :4]  # one sentence, one segment
    assert torch.equal(head(single, features_only=True)[0], plain(single, features_only=True)[0])


def config(name: str, args: str | None = None) -> ModelConfig:
    return ModelConfig(layers=1, dim=8, ffn=8, heads=2, max_length=16, vocabulary=20, pos_enc=name, pos_enc_args=args)


@pytest.mark.parametrize("row", TABLE["encoding"])
def test_options_of_the_pretrained_model_hold_beside_segments(row: dict[str, Any]) -> None:
    name, args = encoding(config(*row["pretrained"]), row.get("name"), row.get("args"), row.get("segments", "none"))
    assert [name, *([args] if args else [])] == row["expected"]


def test_segments_in_two_ways_are_refused() -> None:
    with pytest.raises(ValueError, match="--segments head: the model already has segments-input"):
        encoding(config("learned+segments-input"), None, None, "head")


@pytest.mark.parametrize(("flags", "message"), TABLE["refused"].items())
def test_what_contradicts_the_model_is_refused(scene: Scene, flags: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        support.trained(scene.words("RTE", *flags.split()))


# --- training


def test_a_toy_is_learned_and_the_checkpoint_stands_alone(scene: Scene, tmp_path: Path) -> None:
    scores = "--metrics accuracy,f1 --best-checkpoint-metric score --maximize-best-checkpoint-metric".split()
    words = scene.words("SST-2", *scores, "--max-epoch", 4, "--valid-subset", "valid", "--save-dir", tmp_path)
    run = support.trained(words)
    assert sum(run.losses[-4:]) < 0.3 * sum(run.losses[:4])
    expected = run.model.state_dict()
    best, last = (
        checkpoint_utils.load_model_ensemble_and_task([str(tmp_path / f"checkpoint_{name}.pt")])[0][0].state_dict()
        for name in ("best", "last")
    )
    assert all(torch.equal(last[name], expected[name]) for name in expected)
    assert set(best) == set(last) == set(expected)


def test_scores_are_exact_and_of_all_processes() -> None:
    """The lists of two processes are joined; fairseq's own criterion would add them like numbers."""

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
    flags = "--num-classes 1 --regression-target --metrics spearman --max-epoch 60 --dropout 0 --attention-dropout 0"
    run = support.trained(scene.words("STS-B", *flags.split(), model=scene.model("learned")))
    assert run.losses[-1] < 0.2 * run.losses[0]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [(TASK, ["<s>", "w5", "</s>", "</s>", "w6", "</s>"]), (TASK[:-2], ["<s>", "w5", "</s>", "w6", "</s>"])],
    ids=["RoBERTa", "BERT"],
)
def test_the_items_are_those_of_the_pretrained_model(scene: Scene, flags: list[str], expected: list[str]) -> None:
    _, task = scene.built("RTE", flags=flags)
    (batch,) = support.batches(task, "valid", longest=None)
    ids = batch["net_input"]["src_tokens"][0].tolist()
    assert [task.source_dictionary[number] for number in ids] == expected
