"""Test that every command refuses a checkpoint of plain data whose configuration would run code, and says why."""

from __future__ import annotations

import contextlib
import importlib
import io
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fairseq_cli.eval_lm
import fairseq_cli.generate
import fairseq_cli.interactive
import fairseq_cli.validate
import pytest
import torch
from fairseq import checkpoint_utils, options
from fairseq.data.fasta_dataset import FastaDataset
from fairseq.models import fconv

import fairseq_posenc
from fairseq_posenc.__main__ import main as plugin
from fairseq_posenc.compat import UnsafeCheckpointError, checkpoint_names, safe_load

from . import support
from .support import PLUGIN, ROOT

Command = Callable[[Path, Path], Any]


def poisoned(source: Path, target: Path, **model: Any) -> Path:
    """Write the checkpoint `source` with these options of its model changed."""
    state = safe_load(source)
    state["cfg"]["model"].update(model)
    torch.save(state, target)
    return target


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """Return the file that the attack would write."""
    return tmp_path / "written"


@pytest.fixture
def evil(trained: Path, tmp_path: Path, mark: Path) -> Path:
    """Write a checkpoint for a real attack: fairseq/models/fconv.py:123 evaluates `encoder_layers`."""
    attack = {"_name": "fconv", "encoder_layers": f"[open({str(mark)!r},'w'),(64,3)]"}
    return poisoned(trained / "checkpoint_last.pt", tmp_path / "evil.pt", **attack)


def generate(path: Path, data: Path) -> Any:
    words = [data, "--user-dir", PLUGIN, "--path", path, "--cpu"]
    return fairseq_cli.generate.main(support.parse(words, options.get_generation_parser, arch="wav2vec2"))


def interactive(path: Path, data: Path) -> Any:
    words = [data, "--user-dir", PLUGIN, "--path", path, "--cpu", "--input", path]
    parser = options.get_interactive_generation_parser
    return fairseq_cli.interactive.main(support.parse(words, parser, arch="wav2vec2"))


def validate(path: Path, data: Path) -> Any:
    words = [data, "--user-dir", PLUGIN, "--path", path, "--cpu", "--task", "translation", "--max-tokens", 200]
    return fairseq_cli.validate.main(support.parse(words, options.get_validation_parser))


def eval_lm(path: Path, data: Path) -> Any:
    text = path.parent / "text"
    text.mkdir()
    shutil.copy(data / "dict.en.txt", text / "dict.txt")
    words = [text, "--user-dir", PLUGIN, "--path", path, "--cpu"]
    return fairseq_cli.eval_lm.main(support.parse(words, options.get_eval_lm_parser))


def start_from(path: Path, data: Path) -> Any:
    return support.train(data, "--pos-enc", "shaw", "--max-update", 1, "--finetune-from-model", path)


def of_plugin(*arguments: str) -> Command:
    """Call a command of the plugin that loads a checkpoint. Raise SystemExit with its errors if it fails."""

    def run(path: Path, data: Path) -> Any:
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            status = plugin([word.format(path=path, data=data, folder=path.parent / "unused") for word in arguments])
        if status:
            raise SystemExit(errors.getvalue())

    return run


def recipe(module: str, *arguments: str) -> Command:
    """Call a script of the recipes that loads --checkpoint, as its stage does."""

    def run(path: Path, data: Path) -> Any:
        folder = path.parent / "unused"
        words = [word.format(path=path, data=data, folder=folder) for word in arguments]
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(ROOT))
            patch.setattr(sys, "argv", [module, *words])
            return importlib.import_module(module).main()

    return run


def squad(path: Path, data: Path) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        return importlib.import_module("recipes.lib.finetuning.questions").load(path, data, gpu=False)


def classify(path: Path, data: Path) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        return importlib.import_module("recipes.text_classification.evaluate").load(path, {}, cpu=True)


def question(path: Path, data: Path) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        return importlib.import_module("recipes.question_generation.score").updates(path)


def length_task(path: Path, data: Path) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        return importlib.import_module("recipes.length_tasks.evaluate").scores(path, data, cpu=True)


def in_torch(path: Path, data: Path) -> Any:
    return fairseq_posenc.load(path)


PLAIN = "--checkpoint {path} --data {data} --output {folder} --cpu".split()
FLAGS = ["--", "--user-dir", str(PLUGIN), "--arch", "posenc_transformer_tiny"]
MEMORY = "--split test --streams 1 --length 4 --memories 2 --segment 4 --same-length true --clamp 2".split()
COMMANDS: dict[str, Command] = {
    "fairseq-generate": generate,
    "fairseq-interactive": interactive,
    "fairseq-validate": validate,
    "fairseq-eval-lm": eval_lm,
    "fairseq_posenc.load": in_torch,
    "average": of_plugin("average", "--inputs", "{path}", "--output", "{folder}"),
    "export-hf": of_plugin("export-hf", "{path}", "--output", "{folder}"),
    "figures": of_plugin("figures", "patterns", "--checkpoint", "{path}", "--data", "{data}", "--output", "{folder}"),
    "generate-text": of_plugin("generate-text", "--checkpoint", "{path}", "--prompt", "w1"),
    "import-hf": of_plugin("import-hf", "{path}", "--pos-enc", "learned", "--output", "{folder}"),
    "length_tasks/evaluate.py": length_task,
    "lib/finetuning/check.py": recipe(
        "recipes.lib.finetuning.check", *"--model learned {path} none --length 8 --output {folder}".split()
    ),
    "lib/finetuning/questions.py": squad,
    "lm_wikitext103/evaluate.py": recipe("recipes.lm_wikitext103.evaluate", *PLAIN, *MEMORY),
    "pretrain_mlm/check_source.py": recipe(
        "recipes.pretrain_mlm.check_source", *"--source {path} --output {folder}".split(), *FLAGS
    ),
    "pretrain_mlm/evaluate.py": recipe(
        "recipes.pretrain_mlm.evaluate", *PLAIN, *"--unigrams {folder} --log {folder}".split()
    ),
    "question_generation/score.py": question,
    "text_classification/evaluate.py": classify,
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_the_attack(command: str, evil: Path, data: Path, mark: Path) -> None:
    refusal = r"(?s)evil\.pt: the file is refused.*the model 'fconv'.*--allow-checkpoint-names fconv"
    with pytest.raises((UnsafeCheckpointError, SystemExit), match=refusal):
        COMMANDS[command](evil, data)
    assert not mark.exists()


def test_training_builds_nothing_of_what_a_checkpoint_names(evil: Path, data: Path, mark: Path) -> None:
    """So no flag is needed for the names of a checkpoint: only the weights are loaded."""
    assert start_from(evil, data).trainer.get_num_updates() == 1
    assert not mark.exists()


def test_average_refuses_the_attack_and_writes_nothing(
    evil: Path, tmp_path: Path, mark: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "mean.pt"
    assert plugin(["average", "--inputs", str(evil), "--output", str(output)]) == 1
    assert "the model 'fconv'" in capsys.readouterr().err
    assert not output.exists()
    allowed = ["--allow-checkpoint-names", "fconv"]
    assert plugin(["average", "--inputs", str(evil), "--output", str(output), *allowed]) == 0
    assert checkpoint_names.offence(safe_load_unchecked(output)) is not None  # allowed for that command only
    assert not mark.exists()


def safe_load_unchecked(path: Path) -> Any:
    return torch.load(path, weights_only=True)


def test_the_command_as_a_process_ends_with_the_refusal(evil: Path, data: Path, mark: Path) -> None:
    command = [*support.script("generate"), data, "--user-dir", PLUGIN, "--path", evil, "--cpu"]
    done = support.run(command, package=False, check=False, forked=True)
    assert done.returncode != 0
    assert "the model 'fconv'" in done.stderr.splitlines()[-1]
    done = support.run([*command, "--allow-checkpoint-names", "fconv"], package=False, check=False, forked=True)
    assert done.returncode != 0
    assert "is not a literal" in done.stderr.splitlines()[-1]  # allowing a name does not allow it to run code
    assert not mark.exists()


def test_the_attack_works_where_nothing_looks(
    evil: Path, data: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the plugin's check, and with the built-in `eval`, the attack writes the file."""
    monkeypatch.setattr(checkpoint_names, "offence", lambda state: None)
    monkeypatch.delitem(vars(fconv), "eval")
    with pytest.raises(TypeError):
        generate(evil, data)
    assert mark.exists()


def test_options_of_a_harmless_model_are_literals(trained: Path, data: Path, tmp_path: Path, mark: Path) -> None:
    """The plugin's own decoder evaluates --adaptive-softmax-cutoff (transformer_decoder.py:147)."""
    attack = {"adaptive_softmax_cutoff": f"[open({str(mark)!r},'w')]"}
    path = poisoned(trained / "checkpoint_last.pt", tmp_path / "evil.pt", **attack)
    with pytest.raises(UnsafeCheckpointError, match=r"adaptive_softmax_cutoff = .* would run as Python code"):
        generate(path, data)
    assert not mark.exists()


def test_no_file_name_reaches_a_shell(trained: Path, data: Path, tmp_path: Path, mark: Path) -> None:
    """`--dataset-impl fasta` runs `cat {path} | ...`; the enum may also be written Choices.fasta."""
    state = safe_load(trained / "checkpoint_last.pt")
    state["cfg"]["task"].update(dataset_impl="Choices.fasta", target_lang=f"de;touch {mark};")
    torch.save(state, tmp_path / "evil.pt")
    with pytest.raises(UnsafeCheckpointError, match=r"dataset_impl = 'Choices.fasta'"):
        validate(tmp_path / "evil.pt", data)
    (tmp_path / "a;touch written;.fasta").write_text(">one\nAB\n")
    with pytest.raises(ValueError, match="pass this path to a shell"):
        FastaDataset(str(tmp_path / "a;touch written;"))
    assert not mark.exists()


def test_a_training_of_any_model_resumes_by_itself(data: Path, tmp_path: Path) -> None:
    """The names in the checkpoint are those of the command line, so no flag is needed; other commands need one."""
    model = "--arch fconv --encoder-embed-dim 8 --decoder-embed-dim 8 --decoder-out-embed-dim 8".split()
    layers = ["--encoder-layers", "[(8, 3)]", "--decoder-layers", "[(8, 3)] * 1", "--decoder-attention", "[True]"]
    for updates in (1, 2):
        run = support.train(data, *layers, "--max-update", updates, "--save-dir", tmp_path, model=model)
        assert run.trainer.get_num_updates() == updates
    path = tmp_path / "checkpoint_last.pt"
    with pytest.raises(UnsafeCheckpointError, match="the model 'fconv'"):
        generate(path, data)
    with checkpoint_names.allowing(["fconv"]):
        models, _ = checkpoint_utils.load_model_ensemble([str(path)], arg_overrides={"data": str(data)})
    assert type(models[0]) is fconv.FConvModel
