"""Test that a missing oracle fails if the environment claims to be complete, and is skipped otherwise."""

from __future__ import annotations

import pytest
from oracle_ways import oracle


def test_missing_oracle_fails_in_the_complete_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSENC_REQUIRE_ORACLES", "1")
    with pytest.raises(pytest.fail.Exception, match="no_such_oracle is missing"):
        oracle("no_such_oracle")


@pytest.mark.parametrize("value", [None, "", "0"])
def test_missing_oracle_is_skipped_elsewhere(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv("POSENC_REQUIRE_ORACLES", raising=False)
    if value is not None:
        monkeypatch.setenv("POSENC_REQUIRE_ORACLES", value)
    with pytest.raises(pytest.skip.Exception, match="no_such_oracle is not installed"):
        oracle("no_such_oracle")


def test_present_oracle_is_imported() -> None:
    assert oracle("math").pi > 3
