"""No checkpoint runs code, whatever its form, in any function and any command that loads it."""

from __future__ import annotations

import contextlib
import importlib
import io
import pickle
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
from support_payload import malicious

import fairseq_posenc
from fairseq_posenc.__main__ import main as plugin
from fairseq_posenc.compat import UnsafeCheckpointError, safe_load

from . import support
from .support import PLUGIN, ROOT

Command = Callable[[Path, Path], Any]


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """Return the file that shows that code has run."""
    return tmp_path / "written"


PICKLES = ("zip", "zip, protocol 4", "old format", "pickle")
CONFIGURATION = "configuration"


def attack(form: str, trained: Path, path: Path, mark: Path) -> Path:
    """Write a checkpoint that writes the file `mark` if its pickle is loaded, or its options are evaluated."""
    state = safe_load(trained / "checkpoint_last.pt")
    if form == CONFIGURATION:  # plain data for a real attack: fairseq/models/fconv.py:123 evaluates `encoder_layers`
        state["cfg"]["model"].update(_name="fconv", encoder_layers=f"[open({str(mark)!r},'w'),(64,3)]")
        torch.save(state, path)
    else:
        path.write_bytes(malicious(mark, state)[form])
    return path


#: Functions that load a checkpoint, with a text, a path or an open file.
LOADERS: dict[str, Callable[[Path], Any]] = {
    "fairseq": lambda path: checkpoint_utils.load_checkpoint_to_cpu(str(path)),
    "EMA weights": lambda path: checkpoint_utils.load_ema_from_checkpoint(str(path)),
    "text": lambda path: safe_load(str(path)),
    "path": safe_load,
    "settings only": lambda path: safe_load(path, mmap=True),
    "open file": lambda path: safe_load(path.open("rb")),
}


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("form", PICKLES)
def test_no_function_runs_a_pickle(
    form: str, loader: str, trained: Path, tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")  # also if torch is set not to check
    path = attack(form, trained, tmp_path / "evil.pt", mark)
    with pytest.raises(UnsafeCheckpointError, match=r"evil\.pt: the file is refused"):
        LOADERS[loader](path)
    assert not mark.exists()


def test_the_pickles_work_where_nothing_looks(trained: Path, tmp_path: Path, mark: Path) -> None:
    for form in PICKLES:
        path = attack(form, trained, tmp_path / "evil.pt", mark)
        with contextlib.suppress(Exception):  # the plain pickle is no file of torch
            torch.load(path, weights_only=False)
        if form == "pickle":
            pickle.loads(path.read_bytes())
        assert mark.exists()
        mark.unlink()


@pytest.mark.parametrize(
    ("value", "name"),
    [(Path("a"), "pathlib"), (eval, "eval"), (shutil.rmtree, "rmtree")],
)
def test_unlisted_objects_are_named(value: Any, name: str, tmp_path: Path) -> None:
    torch.save({"model": {}, "extra_state": value}, tmp_path / "other.pt")
    with pytest.raises(UnsafeCheckpointError, match=rf"other\.pt: .*{name}"):
        safe_load(tmp_path / "other.pt")


# -- commands


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


def function(name: str, *arguments: Any, **options: Any) -> Command:
    """Call a function of the recipes that loads a checkpoint."""

    def run(path: Path, data: Path) -> Any:
        module, _, attribute = name.rpartition(".")
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(ROOT))
            return getattr(importlib.import_module(module), attribute)(path, *arguments, **options)

    return run


PLAIN = "--checkpoint {path} --data {data} --output {folder} --cpu".split()
FLAGS = ["--", "--user-dir", str(PLUGIN), "--arch", "posenc_transformer_tiny"]
MEMORY = "--split test --streams 1 --length 4 --memories 2 --segment 4 --same-length true --clamp 2".split()
COMMANDS: dict[str, Command] = {
    "fairseq-generate": generate,
    "fairseq-interactive": interactive,
    "fairseq-validate": validate,
    "fairseq-eval-lm": eval_lm,
    "fairseq_posenc.load": lambda path, data: fairseq_posenc.load(path),
    "average": of_plugin("average", "--inputs", "{path}", "--output", "{folder}"),
    "export-hf": of_plugin("export-hf", "{path}", "--output", "{folder}"),
    "figures": of_plugin("figures", "patterns", "--checkpoint", "{path}", "--data", "{data}", "--output", "{folder}"),
    "generate-text": of_plugin("generate-text", "--checkpoint", "{path}", "--prompt", "w1"),
    "import-hf": of_plugin("import-hf", "{path}", "--pos-enc", "learned", "--output", "{folder}"),
    "length_tasks/evaluate.py": function("recipes.length_tasks.evaluate.scores", Path("data-bin"), cpu=True),
    "lib/finetuning/check.py": recipe(
        "recipes.lib.finetuning.check", *"--model learned {path} none --length 8 --output {folder}".split()
    ),
    "lib/finetuning/questions.py": function("recipes.lib.finetuning.questions.load", Path("data-bin"), gpu=False),
    "lm_wikitext103/evaluate.py": recipe("recipes.lm_wikitext103.evaluate", *PLAIN, *MEMORY),
    "pretrain_mlm/check_source.py": recipe(
        "recipes.pretrain_mlm.check_source", *"--source {path} --output {folder}".split(), *FLAGS
    ),
    "pretrain_mlm/evaluate.py": recipe(
        "recipes.pretrain_mlm.evaluate", *PLAIN, *"--unigrams {folder} --log {folder}".split()
    ),
    "question_generation/score.py": function("recipes.question_generation.score.updates"),
    "text_classification/evaluate.py": function("recipes.text_classification.evaluate.load", {}, cpu=True),
}


@pytest.mark.parametrize("form", ["zip", CONFIGURATION])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_runs_code(command: str, form: str, trained: Path, data: Path, tmp_path: Path, mark: Path) -> None:
    path = attack(form, trained, tmp_path / "evil.pt", mark)
    error = ""
    try:
        COMMANDS[command](path, data)
    except (Exception, SystemExit) as stop:  # noqa: BLE001  fairseq has errors of many kinds
        error = str(stop)
    assert not mark.exists()
    if form == "zip":
        assert "evil.pt: the file is refused" in error
    elif command not in ("average", "question_generation/score.py"):  # these two build nothing
        assert error


def test_the_configuration_works_where_nothing_looks(
    trained: Path, data: Path, tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fconv, "eval", eval)
    with pytest.raises(TypeError):
        generate(attack(CONFIGURATION, trained, tmp_path / "evil.pt", mark), data)
    assert mark.exists()


def test_the_command_as_a_process_ends_with_the_refusal(trained: Path, data: Path, tmp_path: Path, mark: Path) -> None:
    path = attack(CONFIGURATION, trained, tmp_path / "evil.pt", mark)
    command = [*support.script("generate"), data, "--user-dir", PLUGIN, "--path", path, "--cpu"]
    done = support.run(command, package=False, check=False, forked=True)
    assert done.returncode != 0
    assert "was not evaluated: it is not a literal" in done.stderr.splitlines()[-1]
    assert not mark.exists()


def test_no_file_name_reaches_a_shell(trained: Path, data: Path, tmp_path: Path, mark: Path) -> None:
    """`--dataset-impl fasta` runs `cat {path} | ...`; the enum may also be written Choices.fasta."""
    state = safe_load(trained / "checkpoint_last.pt")
    state["cfg"]["task"].update(dataset_impl="Choices.fasta", target_lang=f"de;touch {mark};")
    torch.save(state, tmp_path / "evil.pt")
    with pytest.raises(Exception):  # noqa: B017, PT011  the files of this language do not exist
        validate(tmp_path / "evil.pt", data)
    (tmp_path / "a;touch written;.fasta").write_text(">one\nAB\n")
    with pytest.raises(ValueError, match="pass this path to a shell"):
        FastaDataset(str(tmp_path / "a;touch written;"))
    assert not mark.exists()


def test_another_model_of_fairseq_trains_resumes_and_generates(data: Path, tmp_path: Path) -> None:
    """Its lists of convolutions, such as `[(8, 3)] * 2`, are read as before."""
    model = "--arch fconv --encoder-embed-dim 8 --decoder-embed-dim 8 --decoder-out-embed-dim 8".split()
    layers = ["--encoder-layers", "[(8, 3)]", "--decoder-layers", "[(8, 3)] * 1", "--decoder-attention", "[True]"]
    for updates in (1, 2):
        run = support.train(data, *layers, "--max-update", updates, "--save-dir", tmp_path, model=model)
        assert type(run.model) is fconv.FConvModel
        assert run.trainer.get_num_updates() == updates
    generate(tmp_path / "checkpoint_last.pt", data)
