"""No checkpoint runs code, whatever its form, in any function and any command that loads it."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import pickle
import shutil
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils, options
from fairseq.data.fasta_dataset import FastaDataset
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY, fconv
from support_payload import malicious

import fairseq_posenc
from fairseq_posenc.__main__ import main as plugin
from fairseq_posenc.compat import UnsafeCheckpointError, checkpoint_names, safe_load

from . import support
from .support import PLUGIN, ROOT

Command = Callable[[Path, Path], Any]


@pytest.fixture(autouse=True)
def _evaluation_of_a_new_process() -> None:
    """Undo what a checkpoint with a user's class changes: in all of fairseq, `eval` then reads literals only."""
    for name, module in list(sys.modules.items()):
        if name not in checkpoint_names.EVALUATING and vars(module).get("eval") is checkpoint_names.literal:
            del vars(module)["eval"]


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """Return the file that shows that code has run."""
    return tmp_path / "written"


PICKLES = ("zip", "zip, protocol 4", "old format", "pickle")
CONFIGURATION = "configuration"


def attack(form: str, trained: Path, path: Path, mark: Path, model: str = "fconv") -> Path:
    """Write a checkpoint that writes the file `mark` if its pickle is loaded, or a class that it names is built."""
    state = safe_load(trained / "checkpoint_last.pt")
    if form == CONFIGURATION:  # plain data for a real attack: fairseq/models/fconv.py:123 evaluates `encoder_layers`
        state["cfg"]["model"].update(_name=model, encoder_layers=f"[open({str(mark)!r},'w'),(64,3)]")
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


def of_fairseq(command: str, parser: Callable[[], Any], *arguments: str) -> Command:
    """Call a command of fairseq that loads a checkpoint."""

    def run(path: Path, data: Path) -> Any:
        text = path.parent / "text"  # data of a language model
        text.mkdir(exist_ok=True)
        shutil.copy(data / "dict.en.txt", text / "dict.txt")
        words = [text if command == "eval_lm" else data, "--user-dir", PLUGIN, "--path", path, "--cpu", *arguments]
        main = importlib.import_module(f"fairseq_cli.{command}").main
        return main(support.parse(words, parser, arch="wav2vec2" if "generation" in parser.__name__ else None))

    return run


generate = of_fairseq("generate", options.get_generation_parser)
validate = of_fairseq("validate", options.get_validation_parser, "--task", "translation", "--max-tokens", "200")


def of_plugin(*arguments: str) -> Command:
    """Call a command of the plugin that loads a checkpoint. Raise SystemExit with its errors if it fails."""

    def run(path: Path, data: Path) -> Any:
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            status = plugin([word.format(path=path, data=data, folder=path.parent / "unused") for word in arguments])
        if status:
            raise SystemExit(errors.getvalue())

    return run


def of_recipe(module: str, call: Callable[[Any, Path, Path], Any]) -> Command:
    """Call a function of the recipes that loads a checkpoint."""

    def run(path: Path, data: Path) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(ROOT))
            return call(importlib.import_module(module), path, data)

    return run


def script(module: str, *arguments: str) -> Command:
    """Call a script of the recipes that loads a checkpoint, as its stage does."""

    def call(loaded: Any, path: Path, data: Path) -> Any:
        words = [word.format(path=path, data=data, folder=path.parent / "unused") for word in arguments]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", [module, *words])
            return loaded.main()

    return of_recipe(module, call)


PLAIN = "--checkpoint {path} --data {data} --output {folder} --cpu".split()
FLAGS = ["--", "--user-dir", str(PLUGIN), "--arch", "posenc_transformer_tiny"]
MEMORY = "--split test --streams 1 --length 4 --memories 2 --segment 4 --same-length true --clamp 2".split()
COMMANDS: dict[str, Command] = {
    "fairseq-generate": generate,
    "fairseq-interactive": of_fairseq(
        "interactive", options.get_interactive_generation_parser, "--input", str(ROOT / "README.md")
    ),
    "fairseq-validate": validate,
    "fairseq-eval-lm": of_fairseq("eval_lm", options.get_eval_lm_parser),
    "fairseq_posenc.load": lambda path, _: fairseq_posenc.load(path),
    "average": of_plugin("average", "--inputs", "{path}", "--output", "{folder}"),
    "export-hf": of_plugin("export-hf", "{path}", "--output", "{folder}"),
    "figures": of_plugin("figures", "patterns", "--checkpoint", "{path}", "--data", "{data}", "--output", "{folder}"),
    "generate-text": of_plugin("generate-text", "--checkpoint", "{path}", "--prompt", "w1"),
    "import-hf": of_plugin("import-hf", "{path}", "--pos-enc", "learned", "--output", "{folder}"),
    "length_tasks/evaluate.py": of_recipe(
        "recipes.length_tasks.evaluate", lambda module, path, data: module.scores(path, data, cpu=True)
    ),
    "lib/finetuning/check.py": script(
        "recipes.lib.finetuning.check", *"--model learned {path} none --length 8 --output {folder}".split()
    ),
    "lib/finetuning/questions.py": of_recipe(
        "recipes.lib.finetuning.questions", lambda module, path, data: module.load(path, data, gpu=False)
    ),
    "lm_wikitext103/evaluate.py": script("recipes.lm_wikitext103.evaluate", *PLAIN, *MEMORY),
    "pretrain_mlm/check_source.py": script(
        "recipes.pretrain_mlm.check_source", *"--source {path} --output {folder}".split(), *FLAGS
    ),
    "pretrain_mlm/evaluate.py": script(
        "recipes.pretrain_mlm.evaluate", *PLAIN, *"--unigrams {folder} --log {folder}".split()
    ),
    "question_generation/score.py": of_recipe(
        "recipes.question_generation.score", lambda module, path, _: module.updates(path)
    ),
    "text_classification/evaluate.py": of_recipe(
        "recipes.text_classification.evaluate", lambda module, path, _: module.load(path, {}, cpu=True)
    ),
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
    elif command != "average":  # which builds nothing, so that it may average any model
        assert "evil.pt" in error
        assert "fconv" in error


def test_the_configuration_works_where_nothing_looks(
    trained: Path, data: Path, tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_names, "refuse_names", lambda *_: None)
    with pytest.raises(TypeError):
        generate(attack(CONFIGURATION, trained, tmp_path / "evil.pt", mark), data)
    assert mark.exists()


def test_training_builds_nothing_of_what_a_checkpoint_names(
    trained: Path, data: Path, tmp_path: Path, mark: Path
) -> None:
    path = attack(CONFIGURATION, trained, tmp_path / "evil.pt", mark)
    words = ["--pos-enc", "shaw", "--max-update", 1, "--finetune-from-model", path]
    assert support.train(data, *words).trainer.get_num_updates() == 1
    assert not mark.exists()


def test_the_model_of_a_user_evaluates_no_text_of_a_checkpoint(
    trained: Path, data: Path, tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MODEL_REGISTRY, "mine", type("Mine", (fconv.FConvModel,), {"__module__": "my_models"}))
    monkeypatch.setitem(ARCH_MODEL_REGISTRY, "mine", MODEL_REGISTRY["mine"])
    for name in [name for name in sys.modules if name.partition(".")[0] == "fairseq"]:  # to undo the change
        monkeypatch.setitem(vars(sys.modules[name]), "eval", getattr(sys.modules[name], "eval", eval))
    path = attack(CONFIGURATION, trained, tmp_path / "evil.pt", mark, model="mine")
    with pytest.raises(ValueError, match="was not evaluated: it is not a literal"):
        generate(path, data)
    assert not mark.exists()


def changes(mark: Path) -> dict[str, Callable[[dict[str, Any]], None]]:
    """Return changes of a harmless checkpoint that would run code.

    fairseq reads attributes; a pickled OrderedDict may have some that its keys do not show. The plugin's own decoder
    evaluates --adaptive-softmax-cutoff (transformer_decoder.py:147). `--dataset-impl fasta` runs `cat {path} | ...`,
    and the enum may also be written Choices.fasta.
    """
    text = f"[open({str(mark)!r},'w'),(64,3)]"
    named = {"arch": "fconv", "task": "translation", "encoder_layers": text}
    hidden: OrderedDict[str, Any] = OrderedDict()
    vars(hidden).update(named, _name="fconv")
    fasta = {"dataset_impl": "Choices.fasta", "target_lang": f"de;touch {mark};"}
    return {
        "old options": lambda state: state.update(cfg=None, args=argparse.Namespace(**named)),
        "hidden options": lambda state: state.update(args=hidden),
        "hidden model": lambda state: state["cfg"].update(model=hidden),
        "hidden task": lambda state: state.update(cfg={"model": state["cfg"]["model"] | named, "task": hidden}),
        "literal": lambda state: state["cfg"]["model"].update(adaptive_softmax_cutoff=text),
        "shell": lambda state: state["cfg"]["task"].update(fasta),
    }


@pytest.mark.parametrize("change", changes(Path()))
def test_no_option_of_a_checkpoint_runs_code(
    change: str, trained: Path, data: Path, tmp_path: Path, mark: Path
) -> None:
    state = safe_load(trained / "checkpoint_last.pt")
    changes(mark)[change](state)
    torch.save(state, tmp_path / "evil.pt")
    message = "was not evaluated: it is not a literal" if change == "literal" else None
    command = validate if change == "shell" else generate  # fairseq-validate takes the whole task from the checkpoint
    with pytest.raises(Exception, match=message):  # what fairseq cannot read may raise any error
        command(tmp_path / "evil.pt", data)
    assert not mark.exists()


def test_no_file_name_reaches_a_shell(tmp_path: Path, mark: Path) -> None:
    (tmp_path / "a;touch written;.fasta").write_text(">one\nAB\n")
    with pytest.raises(ValueError, match="pass this path to a shell"):
        FastaDataset(str(tmp_path / "a;touch written;"))
    assert not mark.exists()


def test_a_training_of_any_model_resumes(data: Path, tmp_path: Path) -> None:
    """The names in the checkpoint are those of the command line; other commands refuse them."""
    model = "--arch fconv --encoder-embed-dim 8 --decoder-embed-dim 8 --decoder-out-embed-dim 8".split()
    layers = ["--encoder-layers", "[(8, 3)]", "--decoder-layers", "[(8, 3)] * 1", "--decoder-attention", "[True]"]
    for updates in (1, 2):
        run = support.train(data, *layers, "--max-update", updates, "--save-dir", tmp_path, model=model)
        assert type(run.model) is fconv.FConvModel
        assert run.trainer.get_num_updates() == updates
    with pytest.raises(UnsafeCheckpointError, match="the model 'fconv'"):
        generate(tmp_path / "checkpoint_last.pt", data)
