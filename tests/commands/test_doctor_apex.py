"""Test with stand-in modules that doctor recognises each kind of apex, and that fairseq uses NVIDIA's."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support_processes import without_fairseq

from fairseq_posenc.commands.doctor.apex import Apex, check_apex

# The parts of NVIDIA apex that fairseq uses. Marks show that these parts were built and called.
NVIDIA = {
    "apex/__init__.py": "",
    "apex/normalization.py": """
import importlib, torch
class FusedLayerNorm(torch.nn.LayerNorm):
    used = 0
    def __init__(self, shape, eps=1e-5, elementwise_affine=True):
        importlib.import_module("fused_layer_norm_cuda")
        super().__init__(shape, eps, elementwise_affine)
    def forward(self, x):
        FusedLayerNorm.used += 1
        return super().forward(x)
""",
}
KERNEL = {"fused_layer_norm_cuda.py": ""}
# Another project is named apex, too. Only the first line of its package matters here.
PYPI = {"apex/__init__.py": "from pyramid_mailer.interfaces import IMailer\n", "apex/forms.py": ""}
PYPI_COMPLETE = {"apex/__init__.py": "", "apex/forms.py": ""}
RAISES = {"apex/__init__.py": "raise RuntimeError('built for another torch')\n"}

PROBE = """
import dataclasses, json
from fairseq_posenc.commands.doctor import apex
print(json.dumps(dataclasses.asdict(apex.probe())))
"""

# Print the classes that fairseq uses if torch reports a GPU, and if torch reports none. The packages themselves are not
# imported, because they would import all models, which takes seconds.
FAIRSEQ_USES = """
import importlib.util, json, sys, torch, types
torch.cuda.is_available = lambda: True
for name in ("fairseq", "fairseq.modules"):
    folders = importlib.util.find_spec(name).submodule_search_locations
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = folders
from fairseq.modules import layer_norm

def used(gpu):
    torch.cuda.is_available = lambda: gpu
    norm = layer_norm.LayerNorm(4)
    norm(torch.randn(2, 4))
    answer = {"norm": [c.__module__ for c in type(norm).__mro__]}
    if "apex.normalization" in sys.modules:
        answer["calls"] = sys.modules["apex.normalization"].FusedLayerNorm.used
    return answer

print(json.dumps({"cpu": used(False), "gpu": used(True)}))
"""


def run_beside(folder: Path, modules: dict[str, str], code: str) -> Any:
    """Return the JSON that `code` prints in a process where `modules` come first on the path."""
    for name, text in modules.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    env = {**os.environ, "PYTHONPATH": str(folder)}
    result = subprocess.run(without_fairseq(code), env=env, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("modules", "expected", "status"),
    [
        pytest.param({**NVIDIA, **KERNEL}, {"is_nvidia": True, "layer_norm": True}, "ok", id="nvidia"),
        pytest.param(NVIDIA, {"is_nvidia": True, "layer_norm": False}, "fail", id="no-kernel"),
        pytest.param(PYPI, {"present": True, "is_nvidia": False, "error": ""}, "warn", id="pypi"),
        pytest.param(PYPI_COMPLETE, {"present": True, "is_nvidia": False, "error": ""}, "warn", id="pypi-imports"),
        pytest.param(RAISES, {"error": "RuntimeError: built for another torch"}, "fail", id="raises"),
    ],
)
def test_doctor_recognises_each_kind_of_apex(
    tmp_path: Path, modules: dict[str, str], expected: dict[str, object], status: str
) -> None:
    facts = run_beside(tmp_path, modules, PROBE)
    assert {key: facts[key] for key in expected} == expected
    check = check_apex(Apex(**facts), gpu=True)
    assert check.status == status
    assert bool(check.mend) == (status != "ok")


def test_what_doctor_says_without_a_gpu() -> None:
    whole = Apex(present=True, version="0.1", is_nvidia=True, layer_norm=True)
    assert "only on a GPU" in check_apex(whole, gpu=False).found
    python_only = dataclasses.replace(whole, layer_norm=False)
    assert check_apex(python_only, gpu=False).status == "warn"
    assert check_apex(Apex(), gpu=False).status == "ok"


def test_fairseq_uses_apex_only_if_torch_reports_a_gpu(tmp_path: Path) -> None:
    used = run_beside(tmp_path, {**NVIDIA, **KERNEL}, FAIRSEQ_USES)
    assert "apex.normalization" in used["gpu"]["norm"]
    assert used["cpu"]["norm"][0] == "torch.nn.modules.normalization"
    assert (used["cpu"]["calls"], used["gpu"]["calls"]) == (0, 1)


def test_the_wrong_apex_does_not_disturb_fairseq(tmp_path: Path) -> None:
    used = run_beside(tmp_path, PYPI, FAIRSEQ_USES)["gpu"]
    assert used["norm"][0] == "torch.nn.modules.normalization"


def test_apex_without_kernels_breaks_fairseq_on_a_gpu(tmp_path: Path) -> None:
    # Doctor reports this as a failure, because fairseq only checks whether the Python class can be imported.
    with pytest.raises(AssertionError, match="fused_layer_norm_cuda"):
        run_beside(tmp_path, NVIDIA, FAIRSEQ_USES)
