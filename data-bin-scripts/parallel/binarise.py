"""Convert a prepared folder to subwords and fairseq's binary files with the translation recipe's programs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from corpora.errors import CorpusError
from corpora.job import read_json
from corpora.partial import RECORD, make
from shared import FULL, digest, tied, write_whole

ROOT = Path(__file__).resolve().parents[2]
SPLITS = ("train", "valid", "test")
#: Libraries whose versions influence the written bytes.
LIBRARIES = ("fairseq-fixed", "fastBPE", "sacremoses", "sentencepiece", "tokenizers")


def binarise(text: Path, output: Path, options: dict[str, Any], workers: int) -> bool:
    """Write the output, unless it is already complete.

    Args:
        text: Output folder of prepare_parallel.py.
        options: Options of recipes/lib/translation/subwords.py that determine the bytes of the result.
        workers: Number of processes.
    Returns:
        True if the output was written, False if it was already complete.
    Raises:
        CorpusError: The folder does not exist, or one of the programs failed.
    """
    languages = languages_of(text)
    names = [f"{split}.{language}" for split in SPLITS for language in languages]
    files = {name: digest(text / name) for name in names}
    identity = {"options": options, "files": files, "versions": {name: version(name) for name in LIBRARIES}}

    def work(folder: Path) -> Path:
        pieces, own = folder / "subwords", _new_folder(folder)
        if not pieces.exists():
            _subwords(text, own / "subwords", languages, options, workers)
            os.replace(own / "subwords", pieces)
        result = own / "corpus"
        _preprocess(pieces, result, languages, workers, joined=not options["separate"])
        for path in (*pieces.glob("model*"), *pieces.glob("codes*")):
            shutil.copy(path, result)
        record = {"counts": read_json(pieces / "counts.json"), "identity": identity}
        write_whole(result / RECORD, json.dumps(record, indent=1) + "\n")
        return result

    return make(output, identity, work)


def languages_of(text: Path) -> tuple[str, str]:
    """Return the two languages of the folder.

    Raises:
        CorpusError: The folder was not written by prepare_parallel.py.
    """
    try:
        source, target = read_json(text / RECORD)["pair"].split("-")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        why = f"{RECORD} is missing, or prepare_parallel.py did not write it"
        raise CorpusError(f"--text {text}: {why}. Give the output folder of prepare_parallel.py.") from None
    return source, target


def _new_folder(folder: Path) -> Path:
    """Return a new folder for this run, because the programs of an interrupted run may still write to the old one."""
    for earlier in folder.glob("work.*"):
        shutil.rmtree(earlier, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix="work.", dir=folder))


def _subwords(text: Path, output: Path, languages: tuple[str, str], options: dict[str, Any], workers: int) -> None:
    command = _command(text, output, languages, options, workers)
    process = tied.run(command, env={**os.environ, "PYTHONPATH": _path()})
    if process.returncode:
        raise CorpusError(f"{text}: the text could not be split into subwords. The messages above say why.")
    counts = read_json(output / "counts.json")
    shown = (f"{split} {counts[split]['pairs']:,} pairs ({counts[split]['left out']:,} left out)" for split in SPLITS)
    print(f"subwords: {', '.join(shown)}", flush=True)


def _command(text: Path, output: Path, languages: tuple[str, str], options: dict[str, Any], workers: int) -> list[str]:
    command = [sys.executable, "-P", "-m", "recipes.lib.translation.subwords", "--raw", str(text)]
    command += ["--output", str(output), "--languages", *languages, "--workers", str(workers)]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        command += ([flag] if value else []) if isinstance(value, bool) else [flag, str(value)]
    return command


def _path() -> str:
    """Return PYTHONPATH with the root of the repository, so that the recipes can be imported."""
    return os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))


def _preprocess(pieces: Path, result: Path, languages: tuple[str, str], workers: int, *, joined: bool) -> None:
    command = ["fairseq-preprocess", "--source-lang", languages[0], "--target-lang", languages[1]]
    command += ["--joined-dictionary"] if joined else []
    for split in SPLITS:
        command += [f"--{split}pref", str(pieces / split)]
    command += ["--destdir", str(result), "--workers", str(workers)]
    process = tied.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if process.returncode:
        for number in FULL:
            if os.strerror(number) in process.stdout:
                raise OSError(number, os.strerror(number))  # `make` names the folder
        last_lines = "\n".join(process.stdout.splitlines()[-5:])
        raise CorpusError(f"fairseq-preprocess failed with exit status {process.returncode}:\n{last_lines}")
    (result / "preprocess.log").unlink(missing_ok=True)  # contains times and paths, which differ from run to run
