"""Check that commands end with the process that started them, even if SIGKILL ended that process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support_processes import wait_for

from recipes.lib import tied

ROOT = Path(__file__).resolve().parents[3]
#: A shell command with a child. Both write their process ids and wait; the shell also records that it got SIGTERM.
COMMAND = 'sleep 60 & echo $! > child; trap "touch asked; exit" TERM; echo $$ > own; wait'
#: A shell ignores SIGINT in processes that it starts in the background, and these tests may be such a process.
LISTENING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
ASKING = f"{LISTENING}; import sys; from recipes.lib import tied; tied.run(['bash', '-c', sys.argv[1]])"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, "its process group"])
def test_a_command_ends_with_the_process_that_started_it(how: signal.Signals | str, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    asking = [sys.executable, "-c", ASKING, COMMAND]
    with subprocess.Popen(asking, cwd=tmp_path, env=environment, process_group=0, stderr=subprocess.DEVNULL) as process:
        wait_for(lambda: (tmp_path / "own").exists() and (tmp_path / "own").read_text().endswith("\n"))
        if isinstance(how, str):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.send_signal(how)
    for name in ("own", "child"):
        wait_for(lambda name=name: not is_alive(int((tmp_path / name).read_text())))
    assert (tmp_path / "asked").exists()


def is_alive(process: int) -> bool:
    """Return whether a process is running. A process that ended but was not waited for (a zombie) is not."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{process}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


def test_a_command_that_ignores_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = (ROOT / "recipes" / "lib" / "tied.py").read_text().replace("GRACE = 10.0", "GRACE = 0.1")
    (tmp_path / "quick.py").write_text(program)
    monkeypatch.setattr(tied, "__file__", str(tmp_path / "quick.py"))
    deaf = f"trap '' TERM; echo $$ > {tmp_path}/own; sleep 60"
    with tied.start(["bash", "-c", deaf]) as process:
        wait_for(lambda: (tmp_path / "own").exists())
        process.terminate()
    wait_for(lambda: not is_alive(int((tmp_path / "own").read_text())))


@pytest.mark.parametrize(("command", "status"), [("exit 3", 3), ("kill -9 $$", 137), ("true", 0)])
def test_the_exit_status_is_the_status_of_the_command(command: str, status: int) -> None:
    assert tied.run(["bash", "-c", command]).returncode == status


def test_output_is_returned_and_a_missing_command_is_reported() -> None:
    done = tied.run(["bash", "-c", "cat; echo too"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert done.stdout == "too\n"
    done = tied.run(["no-such-command"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert (done.returncode, done.stdout) == (127, "error: no-such-command: No such file or directory\n")
