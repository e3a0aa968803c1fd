"""Change the code in 300 places, one at a time, and count the changes that its tests notice (`make mutants`).

Cosmic Ray makes the changes in a copy of the repository. Each folder of code has the tests that stand for it; the full
suite would take hours for every change. Sessions are kept in results/mutants, and another run continues them. Delete
them if the code has changed since.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SESSIONS = ROOT / "results" / "mutants"
SEED, CHANGES = 20261124, 300
TESTS: dict[str, str] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
CONFIG = Path(__file__).with_name("cosmic-ray.toml").read_text(encoding="utf-8")


def session_of(code: str, number: int, copy: Path) -> Path:
    """Draw and test changes of a folder of code, and return the session with their results.

    The tests must pass without a change; otherwise every change would seem to be noticed.
    """
    SESSIONS.mkdir(parents=True, exist_ok=True)
    session = SESSIONS / f"{code.replace('/', '-')}.sqlite"
    config = session.with_suffix(".toml")
    config.write_text(CONFIG.format(code=code, python=sys.executable, tests=TESTS[code]), encoding="utf-8")
    run("cosmic-ray", "baseline", config, folder=copy)
    if not session.exists():
        complete = session.with_suffix(".new")
        run("cosmic-ray", "init", config, complete, folder=copy)
        draw(complete, number)
        complete.rename(session)
    run("cosmic-ray", "exec", config, session, folder=copy)
    return session


def draw(session: Path, number: int) -> None:
    """Leave a random choice of the changes in a session.

    Annotations such as `int | None` are not executed, so changes of `|` would say nothing.
    """
    with contextlib.closing(sqlite3.connect(session)) as database, database:
        known = (
            "SELECT job_id, module_path, operator_name, occurrence FROM mutation_specs WHERE operator_name NOT LIKE ?"
        )
        changes = sorted(database.execute(known, ["%BinaryOperator_BitOr%"]), key=lambda change: change[1:])
        drawn = [(change[0],) for change in random.Random(SEED).sample(changes, min(number, len(changes)))]
        database.execute("CREATE TEMPORARY TABLE drawn (job_id)")
        database.executemany("INSERT INTO drawn VALUES (?)", drawn)
        for table in ("mutation_specs", "work_items"):
            database.execute(f"DELETE FROM {table} WHERE job_id NOT IN (SELECT job_id FROM drawn)")


def run(*command: str | Path, folder: Path) -> None:
    """Run a command in a folder, and stop if it fails."""
    subprocess.run([str(word) for word in command], cwd=folder, check=True)


def main() -> None:
    """Test the changes of all folders, or of those that the command line names. Print the survivors and their share."""
    for code in sys.argv[1:] or TESTS:
        with tempfile.TemporaryDirectory() as copy:  # a change that an interrupted run has left is not copied back
            unwanted = shutil.ignore_patterns(".git", ".venv*", "results", "__pycache__")
            shutil.copytree(ROOT, copy, ignore=unwanted, dirs_exist_ok=True)
            session = session_of(code, -(-CHANGES // len(TESTS)), Path(copy))
        run("cr-report", "--surviving-only", "--show-diff", session, folder=ROOT)
        run("cr-rate", session, folder=ROOT)


if __name__ == "__main__":
    main()
