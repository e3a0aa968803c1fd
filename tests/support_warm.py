"""Run commands in forks of a process that has imported torch and fairseq, which saves four seconds per command.

A fork gets the command's own folder, environment, files, arguments and path, and imports the plugin itself. What
depends on the order of imports, on spawned processes or on a missing package needs a real process.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import logging
import os
import random
import runpy
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from multiprocessing import get_context, set_start_method
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import IO, Any

CLIS = [f"fairseq_cli.{name}" for name in ("train", "generate", "interactive", "validate", "eval_lm", "preprocess")]
FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(
    ["torch", "fairseq", "sacrebleu", "scipy.stats", "matplotlib.pyplot", "sentencepiece", *CLIS]
)
PROGRAMS = ["train", "generate", "interactive", "validate", "preprocess"]
APPEND = os.O_WRONLY | os.O_APPEND
#: A program of `shell`, which asks for a fork and prints what it has printed.
PROGRAM = """\
#!{python} -P
import os, sys
from multiprocessing.connection import Client
with Client({address!r}) as tests:
    tests.send(([{program!r}, *sys.argv[1:]], os.getcwd(), dict(os.environ), sys.stdin.read()))
    status, out, error = tests.recv()
sys.stdout.write(out)
sys.stderr.write(error)
sys.exit(status)
"""


@functools.cache
def path_of_python() -> list[str]:
    """Return the path of a new Python without PYTHONPATH. The tests have a longer one."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, "-P", "-c", "import sys; print(*sys.path, sep='\\n')"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()


def execute(words: list[str], folder: str, environment: dict[str, str], path: list[str], files: list[str]) -> None:
    """Run `-m MODULE ARGUMENTS` or `SCRIPT ARGUMENTS` in a fork, as Python would."""
    for number, (file, flags) in enumerate(zip(files, (os.O_RDONLY, APPEND, APPEND), strict=True)):
        os.dup2(os.open(file, flags), number)
    sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115  multiprocessing has closed it
    for module in [name for name in sys.modules if name.startswith("fairseq_cli")]:
        del sys.modules[module]  # because these modules set up logging when they are imported
    logging.root.handlers.clear()
    gc.freeze()
    random.seed()
    set_start_method("fork", force=True)  # for the workers that load data
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    first = folder if words[0] == "-m" else str(Path(words[0]).resolve().parent)
    sys.path[:] = [first, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep)), *path]
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


class Fork:
    """Run a command of Python in a fork, with the parts of `subprocess.Popen` that tests use."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path | str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: IO[str] | None = None,
        stdout: IO[str] | None = None,
        stderr: IO[str] | None = None,
    ) -> None:
        words = [*command[1:]] if command[0] == sys.executable else [*command]
        files = [file.name if file else os.devnull for file in (stdin, stdout, stderr)]  # the fork opens them again
        arguments = (words, str(cwd or Path.cwd()), dict(env or os.environ), path_of_python(), files)
        self.process = FORKS.Process(target=execute, args=arguments)
        self.process.start()

    @property
    def returncode(self) -> int | None:
        return self.process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self.process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(str(self.process.pid), timeout or 0)
        return self.returncode

    def kill(self) -> None:
        self.process.kill()


def run(
    command: Sequence[Any], *, input: str = "", timeout: float = 600, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command of Python to its end and return its output, as `subprocess.run` does."""
    words = [str(word) for word in command]
    with contextlib.ExitStack() as files:
        given, out, err = (files.enter_context(tempfile.NamedTemporaryFile("w+")) for _ in range(3))
        given.write(input)
        given.flush()
        process = Fork(words, stdin=given, stdout=out, stderr=err, **options)
        try:
            status = process.wait(timeout)
        finally:
            process.kill()
        texts = [file.seek(0) or file.read() for file in (out, err)]
    return subprocess.CompletedProcess(words, status, *texts)


def shell(
    script: str, programs: Path, *, cwd: Path, env: Mapping[str, str] = os.environ, timeout: float = 600
) -> subprocess.CompletedProcess[str]:
    """Run a bash script that stops at its first error; its `fairseq-*` commands run in forks.

    Args:
        programs: New folder for the programs that stand in for those of fairseq.
    """
    programs.mkdir()
    listener = Listener(family="AF_UNIX")
    for name in PROGRAMS:
        path = programs / f"fairseq-{name}"
        program = str(Path(sys.prefix) / "bin" / path.name)
        path.write_text(PROGRAM.format(python=sys.executable, address=listener.address, program=program))
        path.chmod(0o755)
    threading.Thread(target=_listen, args=(listener,), daemon=True).start()
    command = ["bash", "-euo", "pipefail", "-c", script]
    variables = {**env, "PATH": f"{programs}{os.pathsep}{env['PATH']}"}
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "check": False}
    return subprocess.run(command, cwd=cwd, env=variables, timeout=timeout, **options)


def _listen(listener: Listener) -> None:
    while True:  # until the tests end
        threading.Thread(target=_answer, args=(listener.accept(),), daemon=True).start()


def _answer(program: Connection) -> None:
    """Run the command of a program of `shell` in a fork, and tell the program its exit status and output."""
    with program:
        words, folder, environment, given = program.recv()
        ended = run(words, input=given, cwd=folder, env=environment)
        program.send((ended.returncode, ended.stdout, ended.stderr))
