"""Test when the package imports fairseq and registers with it, and that its torch API does neither."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("fairseq")

from . import ROOT, run

PACKAGE = ROOT / "fairseq_posenc"
#: Code that raises unless the package has registered everything and has mended fairseq.
CHECK = """
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.data import data_utils
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.optim import OPTIMIZER_REGISTRY
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_REGISTRY
from fairseq.trainer import Trainer
def registered():
    parts = ["posenc_transformer" in ARCH_MODEL_REGISTRY, "posenc_masked_lm" in TASK_REGISTRY]
    parts += ["squad" in CRITERION_REGISTRY, "posenc_lamb" in OPTIMIZER_REGISTRY]
    parts += ["rouge_l" in REGISTRIES["scoring"]["registry"]]
    return [*parts, hasattr(data_utils.batch_by_size, "__wrapped__"), hasattr(Trainer.load_checkpoint, "__wrapped__")]
"""
YES = f"{CHECK}\nassert all(registered()), registered()"
NO = f"{CHECK}\nassert not any(registered()), registered()"


def works(code: str, *args: str) -> None:
    done = run(code, *args)
    assert done.returncode == 0, done.stderr


def test_the_torch_api_does_not_import_fairseq() -> None:
    works("""
        import sys, torch
        import fairseq_posenc as pe
        stack = pe.Stack("shaw+t5", None, pe.StackShape(layers=1, heads=2, dim=8, max_length=8))
        stack(torch.zeros(1, 3, 8), stack.positions(torch.ones(1, 3, dtype=torch.long), pad=0))
        import fairseq_posenc.hub, fairseq_posenc.compat
        assert not [name for name in sys.modules if name.partition(".")[0] in ("fairseq", "fairseq_cli", "hydra")]
    """)


@pytest.mark.parametrize("command", ["--help", "--version", "path", "list"])
def test_commands_that_need_no_fairseq_do_not_import_it(command: str) -> None:
    heavy = {"fairseq"} if command == "list" else {"fairseq", "torch", "numpy"}
    works(f"""
        import contextlib, runpy, sys
        sys.argv[1:] = ["{command}"]
        with contextlib.suppress(SystemExit):
            runpy.run_module("fairseq_posenc", run_name="__main__", alter_sys=True)
        assert not {heavy} & set(sys.modules)
    """)


IMPORTED = "import fairseq_posenc as pe; pe.names()"
#: A call of fairseq for the folder that replaces @.
USER_DIR = (
    "from argparse import Namespace; from fairseq import utils; utils.import_user_module(Namespace(user_dir='@'))"
)
WAYS = {
    "fairseq first": "import fairseq, fairseq_posenc",
    "models": f"{IMPORTED}; import fairseq_posenc.models",
    "a class of tasks": "from fairseq_posenc.tasks.lm_memory import LMMemoryTask",
    "a class of criterions": "import fairseq_posenc.criterions.squad",
    "optim": "import fairseq_posenc.optim",
    "unpickling": r"import pickle; pickle.loads(b'cfairseq_posenc.models.translation\nPosEncTransformer\n.')",
    "--user-dir package": f"{IMPORTED}; {USER_DIR}; {USER_DIR}",
    "--user-dir link": f"{USER_DIR}; {USER_DIR}",
    "--user-dir clone": f"{IMPORTED}; {USER_DIR}",
}
TWICE = """
import fairseq_posenc.models
from fairseq import checkpoint_utils, options, search, utils
from fairseq.data import MMapIndexedDataset, data_utils, token_block_dataset
from fairseq.trainer import Trainer
from fairseq_posenc import compat
owners = (checkpoint_utils, options, search.DiverseBeamSearch, utils, MMapIndexedDataset, data_utils)
owners += (token_block_dataset, Trainer)
def mended():
    return [dict(vars(owner)) for owner in owners]
before = mended()
compat.apply()
assert mended() == before
"""
CODES = {way: f"{code}\n{YES}" for way, code in WAYS.items()}
CODES |= {"applying the fixes twice": TWICE, "fairseq imported later": f"{IMPORTED}; import fairseq.models\n{NO}"}
#: Import what fairseq needs, which takes most of the time, and then run each code in a fork.
FORKS = """
import contextlib, json, os, sys, traceback, torch
with contextlib.suppress(ImportError):
    import sklearn, torch.utils.tensorboard
assert not {"fairseq", "fairseq_posenc"} & set(sys.modules)
errors = {}
for way, code in json.loads(sys.argv[1]).items():
    read, write = os.pipe()
    if os.fork() == 0:
        with os.fdopen(write, "w") as file:
            try:
                exec(code, {})
            except BaseException:
                file.write(traceback.format_exc())
            else:
                file.write("done")
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        errors[way] = file.read()
    os.wait()
print(json.dumps(errors))
"""


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what each code printed: "done", or its error. --user-dir names the package, a link to it, or the clone."""
    folder = tmp_path_factory.mktemp("user_dirs")
    for name, place in {"link": PACKAGE, "clone": ROOT}.items():
        (folder / name).mkdir()
        (folder / name / PACKAGE.name).symlink_to(place)
    codes = {way: code.replace("@", f"{folder / way.split()[-1] / PACKAGE.name}") for way, code in CODES.items()}
    codes["--user-dir package"] = CODES["--user-dir package"].replace("@", str(PACKAGE))
    done = run(FORKS, json.dumps(codes))
    assert done.returncode == 0, done.stderr
    printed: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return printed


@pytest.mark.parametrize("way", CODES)
def test_each_way_registers_everything_once_and_only_then(way: str, output: dict[str, str]) -> None:
    assert output[way] == "done", output[way]


def test_spawned_processes_register(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"""
import multiprocessing
from fairseq_posenc.models.translation import PosEncTransformer

def check(model):
    exec({YES!r}, globals())

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.map(check, [PosEncTransformer])
""")
    works(f"import runpy, sys; sys.argv[:] = [{str(program)!r}]; runpy.run_path({str(program)!r}, run_name='__main__')")


def test_a_broken_fairseq_is_named(tmp_path: Path) -> None:
    (tmp_path / "fairseq").mkdir()
    (tmp_path / "fairseq" / "__init__.py").write_text("1 / 0")
    done = run(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import fairseq_posenc, fairseq_posenc.models")
    assert "fairseq cannot be imported (ZeroDivisionError: division by zero). Run: " in done.stderr
