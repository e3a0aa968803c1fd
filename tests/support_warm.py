"""Run commands in forks of a process that has imported torch and fairseq, which saves four seconds per command.

A fork gets the command's own folder, environment, files and arguments, and imports the plugin itself. What depends on
the order of imports, on spawned processes or on a missing package needs a real process.
PYTEST_DONT_REWRITE: the forks run this file too.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import logging
import os
import random
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

PRELOADED = ["torch", "fairseq", "sacrebleu", "scipy.stats", "matplotlib.pyplot", "sentencepiece"]
PRELOADED += [f"fairseq_cli.{name}" for name in ("train", "generate", "interactive", "validate", "eval_lm")]
PRELOADED += ["fairseq_cli.preprocess"]
LONGEST = 1 << 17  # bytes of a request: the arguments and the environment
SERVER = "SUPPORT_WARM_SERVER"  # variable with the number of the open socket of the process that forks
PROGRAMS = ["train", "generate", "interactive", "validate", "preprocess"]
PROGRAM = """\
#!{python} -P
import sys
sys.path.insert(0, {folder!r})
import support_warm
sys.exit(support_warm.Fork([{program!r}, *sys.argv[1:]], stdin=0, stdout=1, stderr=2).wait())
"""
NUMBER = struct.Struct("i")


# -- the process that forks ---------------------------------------------------------------------------------


def serve(control: socket.socket) -> list[str] | None:
    """Fork for each request until the tests end. Return the command in each fork, and None at the end."""
    for module in PRELOADED:
        importlib.import_module(module)
    for module in [name for name in sys.modules if name.startswith("fairseq_cli")]:
        del sys.modules[module]  # because these modules set up logging when they are imported
    logging.root.handlers.clear()
    gc.freeze()
    while True:
        request, files, _, _ = socket.recv_fds(control, LONGEST, 4)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not request:
            return None
        if os.fork() == 0:
            control.close()
            return forked(json.loads(request), *files)
        for file in files:
            os.close(file)


def forked(request: dict[str, Any], stdin: int, stdout: int, stderr: int, told: int) -> list[str]:
    """Fork once more. This process waits and reports the exit status; the new process returns the command."""
    if pid := os.fork():
        wait_for(pid, told)
    for number, file in enumerate((stdin, stdout, stderr)):
        os.dup2(file, number)
        os.close(file)
    os.close(told)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    random.seed()
    command: list[str] = request["command"]
    return command


def wait_for(pid: int, told: int) -> NoReturn:
    os.write(told, NUMBER.pack(pid))
    _, status = os.waitpid(pid, 0)
    os.write(told, NUMBER.pack(os.waitstatus_to_exitcode(status)))
    os._exit(0)


def execute(command: list[str]) -> None:
    """Run `-m MODULE ARGUMENTS` or `SCRIPT ARGUMENTS`, as Python would."""
    os.execvp = become  # type: ignore[assignment]
    if command[0] == "-m":
        sys.argv = command[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = command
        sys.path.insert(0, str(Path(command[0]).resolve().parent))
        runpy.run_path(command[0], run_name="__main__")


def become(_: str, command: list[str]) -> NoReturn:
    """Replace this command by another command of Python."""
    execute(arguments_of(command) or sys.exit(f"no command of Python: {command}"))
    sys.exit()


# -- the tests' side ----------------------------------------------------------------------------------------


@functools.cache
def server() -> tuple[subprocess.Popen[bytes] | None, socket.socket]:
    """Start the process that forks. It ends when the socket is closed, so at the latest when this process ends.

    The programs of `shell` use the process of the tests that started them.
    """
    if number := os.environ.get(SERVER):
        return None, socket.socket(fileno=int(number))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, "-P", __file__, str(theirs.fileno())]
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()], **options)
    theirs.close()
    return process, ours


def stop() -> None:
    """End the process that forks, if there is one, and wait, so that its time counts for the tests."""
    if server.cache_info().currsize:
        process, control = server()
        control.shutdown(socket.SHUT_RDWR)  # closing is not enough: a worker of a DataLoader may hold a copy
        if process:
            process.wait()


def arguments_of(command: Sequence[str]) -> list[str] | None:
    """Return the argument of `execute` for a command of Python, and None for other commands."""
    program, *words = command
    if Path(program).name.startswith("fairseq-"):
        return [*command]
    if program == sys.executable and words and words[0] != "-c":
        return words
    return None


class Fork:
    """Run a command of Python in a fork, with the parts of `subprocess.Popen` that tests and recipes use."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path | str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: IO[Any] | int = subprocess.DEVNULL,
        stdout: IO[Any] | int = subprocess.DEVNULL,
        stderr: IO[Any] | int = subprocess.DEVNULL,
    ) -> None:
        arguments = arguments_of(command)
        assert arguments is not None, f"no command of Python: {command}"
        request = {"command": arguments, "folder": str(cwd or Path.cwd()), "environment": dict(env or os.environ)}
        self.returncode: int | None = None
        self.told, told = os.pipe()
        with open(os.devnull, "r+b") as nothing:
            files = [nothing if file == subprocess.DEVNULL else file for file in (stdin, stdout, stderr)]
            numbers = [file if isinstance(file, int) else file.fileno() for file in files]
            socket.send_fds(server()[1], [json.dumps(request).encode()], [*numbers, told])
        os.close(told)
        self.pid = self._number()

    def _number(self) -> int:
        return int(NUMBER.unpack(os.read(self.told, NUMBER.size))[0])

    def poll(self) -> int | None:
        return self.wait(0) if self.returncode is not None or select.select([self.told], [], [], 0)[0] else None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self.told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            self.returncode = self._number()
            os.close(self.told)
        return self.returncode

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def __enter__(self) -> Fork:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()


def popen(command: Sequence[str], *, pass_fds: Sequence[int] = (), **options: Any) -> Any:
    """Start a command as `subprocess.Popen` does, in a fork if it is one of Python."""
    if arguments_of(command) is None:
        return subprocess.Popen(command, pass_fds=pass_fds, **options)
    return Fork(command, **options)


def run(
    command: Sequence[Any], *, input: str = "", timeout: float = 200, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command of Python to its end and return its output, as `subprocess.run` does."""
    words = [str(word) for word in command]
    with contextlib.ExitStack() as files:
        given, out, err = (files.enter_context(tempfile.TemporaryFile("w+")) for _ in range(3))
        given.write(input)
        given.seek(0)
        process = Fork(words, stdin=given, stdout=out, stderr=err, **options)
        try:
            status = process.wait(timeout)
        finally:
            process.kill()
        texts = [file.seek(0) or file.read() for file in (out, err)]
    return subprocess.CompletedProcess(words, status, *texts)


def shell(
    script: str, programs: Path, *, cwd: Path, env: Mapping[str, str] = os.environ, timeout: float = 200
) -> subprocess.CompletedProcess[str]:
    """Run a bash script that stops at its first error; its `fairseq-*` commands run in forks.

    Args:
        programs: New folder for the programs that stand in for those of fairseq.
    """
    programs.mkdir()
    for name in PROGRAMS:
        path = programs / f"fairseq-{name}"
        program = str(Path(sys.prefix) / "bin" / path.name)
        path.write_text(PROGRAM.format(python=sys.executable, folder=str(Path(__file__).parent), program=program))
        path.chmod(0o755)
    control = server()[1].fileno()
    variables = {**env, SERVER: str(control), "PATH": f"{programs}{os.pathsep}{env['PATH']}"}
    command = ["bash", "-euo", "pipefail", "-c", script]
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "check": False}
    return subprocess.run(command, cwd=cwd, env=variables, pass_fds=[control], timeout=timeout, **options)


def finish(command: list[str]) -> NoReturn:
    """Execute the command and exit like Python, but without freeing modules, which would take longer."""
    status = 0
    try:
        execute(command)
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001  (a command may end in any way)
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__" and (command := serve(socket.socket(fileno=int(sys.argv[1])))):
    finish(command)
