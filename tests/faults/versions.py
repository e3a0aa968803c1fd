"""Test the core with the oldest and the newest version of torch (`make versions`), and write docs/reliability.md.

Each version gets a virtual environment of its own outside of the clone, with torch, numpy and the tools of the tests,
but without fairseq. A wheel of torch for GPUs takes about 6 GB. `POSENC_VERSIONS=DIR` names the folder of the
environments, which are kept there; without it, they are built in a temporary folder. A version whose tests have passed
is not repeated.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from xml.etree import ElementTree

from tests.faults import table

CORE = "tests/test_positions.py tests/ops tests/attention tests/encodings tests/laws"
#: What torch 2.5 cannot do: FlexAttention in the form that is used here, one graph of a layer, and torch.export.
NEW = (
    "--ignore tests/laws/test_flex.py --ignore tests/laws/test_compiled.py --ignore tests/laws/test_exported.py "
    "--ignore tests/attention/test_choice.py "
    "-k 'not flex and not compile and not test_a_mask_without_documents_is_caught'"
)
#: Arguments of pytest besides CORE, by the version of torch. setup.py names the oldest version.
VERSIONS = {"2.5.0": NEW, "2.15.0": ""}
PACKAGES = "numpy scipy safetensors tabulate setuptools pytest hypothesis pytest-timeout pytest-xdist".split()


def installed(version: str, folder: Path) -> Path:
    """Return the Python of an environment with this version of torch, which is built unless it is there."""
    environment = folder / f"torch-{version}"
    python = environment / "bin" / "python"
    if not (environment / "complete").exists():
        venv.create(environment, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", f"torch=={version}", *PACKAGES], check=True)
        (environment / "complete").touch()
    return python


def run(python: Path, arguments: str, report: Path) -> tuple[int, int]:
    """Run the core's tests, and return how many ran and how many of these passed."""
    command = f"{python} -m pytest -q -p no:cacheprovider -n 2 --dist loadscope --timeout 1200 --junitxml {report}"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": str(table.ROOT)}
    environment.pop("POSENC_REQUIRE_ORACLES", None)
    subprocess.run(f"{command} {CORE} {arguments}", shell=True, cwd=table.ROOT, env=environment, check=False)
    suite = next(ElementTree.parse(report).getroot().iter("testsuite"))
    tests, skipped, *failed = (int(suite.get(name, "0")) for name in ("tests", "skipped", "failures", "errors"))
    return tests - skipped, tests - skipped - sum(failed)


def main() -> int:
    """Test all versions that no earlier run has finished, and return 1 if a test failed."""
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(os.environ.get("POSENC_VERSIONS") or temporary)
        for version, arguments in VERSIONS.items():
            fault = f"versions: the core with torch {version}"
            if table.done(fault):
                continue
            tests, passed = run(installed(version, folder), arguments, Path(temporary) / "report.xml")
            if tests and passed == tests:
                table.record(fault, tests, passed)
            else:
                print(f"{fault}: {passed} of {tests} tests passed", file=sys.stderr, flush=True)
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
