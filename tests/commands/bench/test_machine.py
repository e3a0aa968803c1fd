"""Test that the settings of the memory allocator are fixed before anything is measured."""

from __future__ import annotations

import pytest

from fairseq_posenc.commands import bench
from fairseq_posenc.commands.bench import machine


def test_the_allocator_is_set_unless_the_user_set_it() -> None:
    assert machine.pinned({"A": "1"}, "glibc") == {"A": "1", **machine.ALLOCATOR}
    own_setting = {"MALLOC_MMAP_THRESHOLD_": "5"}
    assert machine.pinned(own_setting, "glibc") == {**machine.ALLOCATOR, **own_setting}
    assert machine.pinned(dict(machine.ALLOCATOR), "glibc") is None
    assert machine.pinned({}, "musl") is None
    assert machine.allocator(own_setting, "glibc") == "MALLOC_MMAP_THRESHOLD_=5, MALLOC_TRIM_THRESHOLD_=default"


def test_the_benchmark_restarts_with_the_allocator_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Replaced(Exception):
        """End the test where the process would be replaced, because `execve` never returns."""

    def execve(program: str, argv: list[str], env: dict[str, str]) -> None:
        raise Replaced(argv[1:], env)

    monkeypatch.setattr(machine.platform, "libc_ver", lambda: ("glibc", "2.36"))
    monkeypatch.setattr(machine.os, "execve", execve)
    for name in machine.ALLOCATOR:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(Replaced) as replaced:
        bench.main(["--quick", "--json"])
    argv, env = replaced.value.args
    assert argv == ["-m", "fairseq_posenc", "bench", "--quick", "--json"]
    assert machine.ALLOCATOR.items() <= env.items()
    assert "restarts itself" in capsys.readouterr().err
