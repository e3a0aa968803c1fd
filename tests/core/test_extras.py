"""Test that scores alone need sacrebleu, scikit-learn, scipy and rapidfuzz, and that an error names the missing one."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from support_processes import without_fairseq

from fairseq_posenc.core import extras
from fairseq_posenc.core.refusal import InputError

NEEDS = tomllib.loads(Path(__file__).with_name("extras.toml").read_text("utf-8"))["needs"]


@pytest.mark.parametrize("row", NEEDS, ids=lambda row: row["score"])
def test_the_error_says_what_to_install(row: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    compute = pkgutil.resolve_name(f"fairseq_posenc.{row['score']}")
    compute(*row["arguments"])
    monkeypatch.setitem(sys.modules, row["module"], None)  # Python then refuses the import, as if it were not installed
    words = rf"^\S.* needs the package {row['package']}.*\. Run: pip install {row['package']}$"
    with pytest.raises(InputError, match=words) as error:
        compute(*row["arguments"])
    assert "\n" not in str(error.value)


def test_a_fault_of_an_installed_package_is_not_called_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "import_module", mock.Mock(side_effect=ImportError("it is broken")))
    with pytest.raises(ImportError, match="it is broken"):
        extras.extra("rapidfuzz", "ROUGE-L")


def test_importing_the_scores_imports_none_of_the_packages() -> None:
    code = "import fairseq_posenc.metrics.classification, fairseq_posenc.analysis.results, sys\n"
    code += "print({'sacrebleu', 'sklearn', 'scipy', 'rapidfuzz'} & set(sys.modules))"
    assert subprocess.check_output(without_fairseq(code), text=True) == "set()\n"
