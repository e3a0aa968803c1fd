"""Test the core with the oldest and the newest version of torch (`make versions`), and write docs/reliability.md.

Each version gets a virtual environment of its own outside of the clone, with torch, the packages of the core and of the
metrics, and the tools of the tests, but without fairseq. A wheel of torch for GPUs takes about 6 GB.
`POSENC_VERSIONS=DIR` names the folder of the environments, which are kept there; without it, they are built in a
temporary folder. A version whose tests have all passed is not repeated.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from tests.faults import table, trials

#: test_question_scores.py also tests a recipe, whose packages these environments lack.
CORE = (
    "tests/test_positions.py tests/core tests/ops tests/attention tests/encodings tests/laws tests/metrics "
    "--ignore tests/metrics/test_question_scores.py"
)
RANGES = "tests/laws/test_option_ranges.py"
#: What torch 2.5 cannot do: one graph of a layer, the compiled formula, and torch.export.
NEW = (
    "--ignore tests/laws/test_graphs.py --ignore tests/laws/test_compiled.py --ignore tests/laws/test_exported.py "
    "-k 'not compile and not limit_of_the_process'"
)
#: Arguments of pytest by the version of torch, for each run of pytest. setup.py names the oldest version. A loop that
#: torch 2.5 compiles with -ffast-math makes the process round subnormal numbers to 0, which RANGES needs.
VERSIONS = {"2.5.0": (f"{CORE} {NEW} --ignore {RANGES}", RANGES), "2.15.0": (CORE,)}
PACKAGES = "numpy scipy safetensors tabulate sacrebleu rapidfuzz scikit-learn setuptools".split()
PACKAGES += "pytest hypothesis pytest-timeout pytest-xdist".split()


def installed(version: str, folder: Path) -> Path:
    """Return the Python of an environment with this version of torch; build what is missing of the environment."""
    environment = folder / f"torch-{version}"
    python, complete = environment / "bin" / "python", environment / "complete"
    packages = " ".join(PACKAGES)
    if not complete.exists() or complete.read_text(encoding="utf-8") != packages:  # an older clone needed fewer
        venv.create(environment, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", f"torch=={version}", *PACKAGES], check=True)
        complete.write_text(packages, encoding="utf-8")
    return python


def main() -> int:
    """Test all versions that no earlier run has finished, and return 1 if a test failed."""
    os.environ.pop("POSENC_REQUIRE_ORACLES", None)  # these environments have the core's packages only
    started = time.monotonic()
    faults = {f"versions: the core with torch {version}": version for version in VERSIONS}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(os.environ.get("POSENC_VERSIONS") or temporary)
        for fault, version in faults.items():
            if not table.done(fault):
                runs = [f"--timeout 1200 {run}" for run in VERSIONS[version]]
                trials.count(fault, installed(version, folder), *runs)
    return table.show(faults, started)


if __name__ == "__main__":
    sys.exit(main())
