"""Test that a missing oracle fails if the environment claims to be complete, and is skipped otherwise."""

from __future__ import annotations

import pytest
from oracle_ways import oracle


@pytest.mark.parametrize(("value", "outcome"), [("1", pytest.fail), ("", pytest.skip), ("0", pytest.skip)])
def test_a_missing_oracle(value: str, outcome: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSENC_REQUIRE_ORACLES", value)
    with pytest.raises(outcome.Exception, match="no_such_oracle is"):
        oracle("no_such_oracle")
