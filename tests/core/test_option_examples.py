"""Test the example that an option has for tests and documentation."""

from __future__ import annotations

import pytest

from fairseq_posenc.core.options import option


@pytest.mark.parametrize(("default", "example"), [("one", "other"), ("other", "one")])
def test_the_example_is_not_the_default(default: str, example: str) -> None:
    assert option(default, "help", choices=("one", "other")).metadata["example"] == example
