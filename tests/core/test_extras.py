"""Test that scores alone need sacrebleu, scikit-learn, scipy and rapidfuzz, and that an error names the missing one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
from support_processes import without_fairseq

from fairseq_posenc import metrics
from fairseq_posenc.core.extras import extra
from fairseq_posenc.core.refusal import InputError
from fairseq_posenc.metrics import classification


@pytest.mark.parametrize(
    ("missing", "package", "compute"),
    [
        ("rapidfuzz.distance", "rapidfuzz", lambda: metrics.rouge_l("a b", ["a c"])),
        ("rapidfuzz.process", "rapidfuzz", lambda: metrics.best_constant(["a b", "a c"])),
        ("sacrebleu.metrics", "sacrebleu", lambda: metrics.score(["a b"], [["a c"]], [1])),
        ("sklearn.metrics", "scikit-learn", lambda: classification.accuracy([1, 0], [1, 1])),
        ("scipy.stats", "scipy", lambda: classification.pearson([1, 2], [1, 3])),
    ],
)
def test_the_error_says_what_to_install(
    missing: str, package: str, compute: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    compute()
    monkeypatch.setitem(sys.modules, missing, None)  # Python then refuses the import, as if nothing were installed
    with pytest.raises(
        InputError, match=rf"^\S.* needs the package {package}.*\. Run: pip install {package}$"
    ) as error:
        compute()
    assert "\n" not in str(error.value)


def test_a_fault_of_an_installed_package_is_not_called_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairseq_posenc.core.extras.import_module", _broken)
    with pytest.raises(ImportError, match="broken"):
        extra("rapidfuzz", "ROUGE-L")


def _broken(name: str) -> None:
    raise ImportError(f"{name} is broken")


def test_importing_the_scores_imports_none_of_the_packages() -> None:
    code = "import fairseq_posenc.metrics.classification, fairseq_posenc.analysis.results, sys\n"
    code += "print({'sacrebleu', 'sklearn', 'scipy', 'rapidfuzz'} & set(sys.modules))"
    assert subprocess.check_output(without_fairseq(code), text=True) == "set()\n"
