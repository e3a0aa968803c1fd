"""Check the packages that the plugin needs: torch, numpy, fairseq and those that the recipes use."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

from .report import Check

TESTED_TORCH = "2.13"
# The first version with the allow-list by name through which the plugin loads checkpoints.
OLDEST_TORCH = (2, 5)
TESTED_NUMPY = ("2.4", "1.26")
TESTED_FAIRSEQ = "0.12.3.1"
EXTENSIONS = ("fairseq.data.data_utils_fast", "fairseq.data.token_block_utils_fast")
SETUP = "make setup"

Importer = Callable[[str], object]


def installed(name: str) -> str | None:
    """Return the version of a distribution; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def import_error(module: str, importer: Importer = importlib.import_module) -> str:
    """Return in one line why `module` cannot be imported; an empty text if it can be imported."""
    try:
        importer(module)
    except Exception as error:  # noqa: BLE001  a broken package may raise anything; the user must see which
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return ""


def check_torch(torch_version: str | None, cuda_build: str | None, error: str = "") -> Check:
    """Check torch.

    Args:
        torch_version: Installed version; None if torch is not installed.
        cuda_build: CUDA version that torch was built for; None for a CPU build.
        error: Why torch cannot be imported; empty if it can.
    """
    if torch_version is None:
        return Check("torch", "fail", "not installed", f"pip install torch==2.13.0, or {SETUP}")
    if error:
        return Check("torch", "fail", f"{torch_version} cannot be imported: {error}", "make clean-env, then make setup")
    shown = f"{torch_version} ({f'CUDA {cuda_build}' if cuda_build else 'CPU build'})"
    major, minor = (int(part) for part in torch_version.split(".")[:2])
    if (major, minor) < OLDEST_TORCH:
        return Check("torch", "fail", shown, "install torch 2.13.0; only 2.5 and newer can load checkpoints safely")
    if f"{major}.{minor}" != TESTED_TORCH:
        return Check(
            "torch",
            "warn",
            f"{shown}, untested",
            "the tested version is 2.13.0; run `make test` to try the installed version",
        )
    return Check("torch", "ok", shown)


def check_numpy(numpy_version: str | None) -> Check:
    """Check numpy. Versions 2.4 and 1.26 are tested; compat/data.py restores what numpy 2 removed."""
    if numpy_version is None:
        return Check("numpy", "fail", "not installed", SETUP)
    if ".".join(numpy_version.split(".")[:2]) in TESTED_NUMPY:
        return Check("numpy", "ok", numpy_version)
    return Check("numpy", "warn", f"{numpy_version}, untested", f"{' and '.join(TESTED_NUMPY)} are tested")


def check_fairseq(fixed: str | None, stock: str | None, error: str = "") -> Check:
    """Check fairseq.

    Args:
        fixed: Installed version of the distribution fairseq-fixed; None if it is not installed.
        stock: Installed version of the distribution fairseq; None if it is not installed.
        error: Why fairseq cannot be imported; empty if it can.
    """
    mend = "pip uninstall fairseq fairseq-fixed, then: make setup (or pip install -e . --no-build-isolation)"
    if fixed and stock:
        state = f"fairseq-fixed {fixed} and fairseq {stock} are both installed, and overwrite each other's files"
        return Check("fairseq", "fail", state, mend)
    if not fixed:
        state = f"fairseq {stock} instead of fairseq-fixed" if stock else "not installed"
        return Check("fairseq", "fail", state, f"fairseq-fixed=={TESTED_FAIRSEQ} is needed: {mend}")
    if error:
        return Check("fairseq", "fail", f"{fixed} cannot be imported: {error}", mend)
    if fixed != TESTED_FAIRSEQ:
        return Check("fairseq", "warn", f"fairseq-fixed {fixed}, untested", f"{TESTED_FAIRSEQ} is tested")
    return Check("fairseq", "ok", f"fairseq-fixed {fixed}")


def check_extension(importer: Importer = importlib.import_module) -> Check:
    """Check the compiled extensions that fairseq needs to form batches.

    Without these extensions, training stops at the first batch. Extensions that were built for other versions crash.
    """
    errors = [error for name in EXTENSIONS if (error := import_error(name, importer))]
    if not errors:
        return Check("fairseq-ext", "ok", "the compiled extensions can be imported")
    mend = "pip install --force-reinstall --no-deps --no-build-isolation fairseq-fixed==" + TESTED_FAIRSEQ
    needs = "cython, numpy and, unless Python is 3.12 on Linux x86-64, a C++ compiler"
    return Check("fairseq-ext", "fail", errors[0], f"{mend} (needs {needs})")


def check_package(name: str, module: str, use: str, needed: bool, error: str, package_version: str | None) -> Check:
    """Check a package that the recipes use.

    Args:
        name: Distribution to install.
        module: Module to import.
        use: Text that says what the package is needed for.
        needed: Whether the check fails if the package is missing; otherwise it warns.
        error: Why the module cannot be imported; empty if it can.
        package_version: Installed version; None if the package is not installed.
    """
    if package_version is not None and not error:
        return Check(name, "ok", package_version)
    state = "not installed" if package_version is None else f"{package_version}: import {module} raises {error}"
    return Check(name, "fail" if needed else "warn", f"{state}; {use}", f"{SETUP} (or pip install {name})")


def stack_checks() -> list[Check]:
    """Check all installed packages that the plugin needs. The check imports torch and fairseq."""
    torch_error = import_error("torch")
    packages = (
        ("sacrebleu", "sacrebleu", "needed by fairseq and for BLEU", True),
        ("scikit-learn", "sklearn", "needed by fairseq and for the scores of classifiers", True),
        ("scipy", "scipy", "needed for confidence intervals and correlations", False),
        ("rapidfuzz", "rapidfuzz", "needed for ROUGE-L", False),
        ("sentencepiece", "sentencepiece", "needed by recipes with a SentencePiece model", False),
        ("fastBPE", "fastBPE", "needed for `--bpe fastbpe` and `--tokenizer fastbpe`; compiled by pip", False),
    )
    return [
        check_torch(installed("torch"), None if torch_error else cuda_build(), torch_error),
        check_numpy(installed("numpy")),
        check_fairseq(installed("fairseq-fixed"), installed("fairseq"), import_error("fairseq")),
        check_extension(),
        *(check_package(*package, import_error(package[1]), installed(package[0])) for package in packages),
    ]


def cuda_build() -> str | None:
    """Return the CUDA version that torch was built for; None for a CPU build."""
    import torch

    return torch.version.cuda


def gpu_names() -> list[str]:
    """Return the names of the GPUs that torch can use; an empty list if torch cannot be imported."""
    if import_error("torch"):
        return []
    import torch

    return [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
