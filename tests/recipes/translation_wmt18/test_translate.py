"""Test recipes/translation_wmt18/translate.sh: raw text in, raw text out, with lines in the same order."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from recipes.lib import outputs
from recipes.lib.outputs import SETTINGS
from recipes.lib.recipe import shown
from recipes.lib.settings import load
from recipes.lib.stages import MARKERS, Ledger
from recipes.lib.values import Refused
from recipes.translation_wmt18 import translate
from recipes.translation_wmt18.__main__ import TRANSLATION
from recipes.translation_wmt18.settings import Settings

#: A stand-in for fairseq-interactive: it skips lines that are too long, and ends with an error at `die`.
FAKE = """
import sys
print("2026 | INFO | Type the input sentence and press return:")
for number, line in enumerate(line.rstrip("\\n") for line in sys.stdin):
    if line == "die":
        sys.exit("no memory")
    if len(line) < 20:
        print(f"S-{number}\\t{line}\\nH-{number}\\t-0.5\\tx\\nD-{number}\\t-0.5\\t{line.upper()}")
"""

#: An endless standard input.
FEEDING = """
import os, threading
reading, writing = os.pipe()
os.dup2(reading, 0)
def feed():
    while True:
        os.write(writing, b"a\\n")
threading.Thread(target=feed, daemon=True).start()
"""


def served(text: bytes) -> tuple[list[str], list[str], translate.Order]:
    written: list[str] = []
    messages: list[str] = []
    order = translate.Order(written.append, messages.append)
    translate.serve([sys.executable, "-c", FAKE], io.BytesIO(text), Path("my.txt"), order, {})
    return written, messages, order


def test_lines_keep_their_order_and_number() -> None:
    written, messages, order = served("a\n\nb\u2028c\n  \nd\n\n".encode())
    assert written == ["A", "", "B\u2028C", "", "D", ""]
    assert not messages
    assert not order.refused


def test_what_cannot_be_translated_is_named_and_leaves_an_empty_line() -> None:
    written, messages, order = served(b"a\n" + b"x" * 30 + b"\nb\xff\nc\r\nd\n" + b"y" * 30)
    assert written == ["A", "", "", "", "D", ""]
    assert [line.split(":")[0] for line in sorted(messages)] == ["line 2", "line 3", "line 4", "line 6"]
    assert any("not UTF-8" in line for line in messages)
    assert any("more pieces than the model" in line for line in messages)
    assert order.refused == 4


def test_of_what_cannot_be_seen_nothing_is_made_up() -> None:
    written, messages, order = served("a\n\u200b\n\u00ad\ufeff\n\u200bb\n".encode())
    assert written == ["A", "", "", "\u200bB"]
    assert not messages
    assert order.sent == 2


@pytest.mark.parametrize("how", ["head", "Ctrl-C"])
def test_an_early_end_is_no_failure(how: str) -> None:
    code = "import os, signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"  # CI may ignore it
    code += f"from recipes.translation_wmt18 import translate\nfake = {FAKE!r}\n"
    code += "translate.command_of = lambda asked: ([sys.executable, '-c', fake], {})\n"
    code += "os._exit(translate.main(['--run', 'x']))"
    command = [sys.executable, "-c", f"{FEEDING}{code}"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"A\n"
        if how == "head":
            process.stdout.close()
        else:
            process.send_signal(signal.SIGINT)
        errors = process.stderr.read().decode()
    assert (process.returncode, errors) == ((141, "") if how == "head" else (130, "interrupted\n"))


def test_a_failure_is_told() -> None:
    with pytest.raises(SystemExit, match=r"no memory\nerror: fairseq-interactive ended with status 1"):
        served(b"a\ndie\nb\n")


def test_threads_are_those_of_the_run() -> None:
    written: list[str] = []
    fake = "import os, sys; list(sys.stdin); print('D-0\t0\t' + os.environ['OMP_NUM_THREADS'])"
    order = translate.Order(written.append, written.append)
    translate.serve([sys.executable, "-c", fake], io.BytesIO(b"a\n"), Path("x"), order, {"OMP_NUM_THREADS": "3"})
    assert written == ["3"]


def test_nothing_in_nothing_out() -> None:
    assert served(b"")[0] == []


# --- which model


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Write the result of a run with two directions, encodings and seeds."""
    options = {
        "direction": "en-de,de-en",
        "pos_enc": "none,rope/t5",
        "seeds": "1,2",
        "corpus": "x",
        "device": "cpu",
        "threads": "1",
    }
    settings = load(TRANSLATION, "short", texts=options)
    facts = {"recipe": "translation_wmt18", "settings": asdict(settings)}
    (tmp_path / "result.json").write_text(json.dumps(facts))
    rows = [
        {"direction": direction, "encoding": encoding, "BLEU": bleu}
        for direction in ("en-de", "de-en")
        for encoding, bleu in (("none", None), ("rope/t5", 3.0), ("elsewhere", 9.0))
    ]
    (tmp_path / "comparison.json").write_text(json.dumps(rows))
    return tmp_path


def command(run: Path, *words: str) -> str:
    return " ".join(translate.command_of(translate.parse(["--run", str(run), *words]))[0])


def test_the_best_model_translates_unless_another_is_named(run: Path) -> None:
    words = command(run)
    assert "averaged/rope--t5.pt" in words
    assert translate.command_of(translate.parse(["--run", str(run)]))[1]["OMP_NUM_THREADS"] == "1"
    assert "--source-lang en --target-lang de" in words
    assert "--lenpen-form gnmt" in words
    assert words.endswith("--buffer-size 64 --skip-invalid-size-inputs-valid-test")
    words = command(run, "--direction", "de-en", "--pos-enc", "none", "--seed", "2", "--buffer-size", "1")
    assert "de-en/averaged/none.seed=2.pt" in words
    assert "en-de/data-bin" in words
    assert "--source-lang de --target-lang en" in words


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--pos-enc", "rop"], "--pos-enc rop: the run has no such model; choose from: "),
        (["--direction", "en-cs"], "--direction en-cs: the run has no such model; choose from: "),
        (["--seed", "3"], "--seed 3: the run has no such model; choose from: "),
    ],
)
def test_a_model_that_is_not_there_is_refused(run: Path, words: list[str], message: str) -> None:
    with pytest.raises(Refused, match=message):
        command(run, *words)


def averaged(run: Path, slug: str, bleu: float | None = None) -> None:
    """Mark a model of the first direction as averaged, and also as scored if `bleu` is given."""
    settings = Settings(**json.loads((run / SETTINGS).read_text()))
    stages = {stage.name: stage for stage in TRANSLATION.plan(settings, run, shown(run)).stages()}
    ledger = Ledger(run / MARKERS, shown(run))
    for kind in ("average", "score")[: 1 if bleu is None else 2]:
        ledger.finish(stages[f"{kind}:en-de.{slug}"])
        for path in stages[f"{kind}:en-de.{slug}"].outputs:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"bleu": bleu}))


def test_an_unfinished_run_translates_with_the_models_that_are_ready(run: Path) -> None:
    facts = json.loads((run / "result.json").read_text())
    (run / "result.json").unlink()  # but the table of an earlier run is still there
    outputs.claim(run, "translation_wmt18", facts["settings"])
    with pytest.raises(Refused, match="no model of en-de is trained and averaged yet"):
        command(run)
    averaged(run, "none")
    assert "averaged/none.pt" in command(run)
    with pytest.raises(Refused, match=r"rope--t5.seed=2 of en-de is not trained .* are ready: none\."):
        command(run, "--pos-enc", "rope/t5", "--seed", "2")
    averaged(run, "rope--t5", bleu=0.5)
    assert "averaged/rope--t5.pt" in command(run)
    averaged(run, "none", bleu=0.7)
    assert "averaged/none.pt" in command(run)
    outputs.claim(run, "translation_wmt18", facts["settings"] | {"average": 2})  # these averages are of other settings
    with pytest.raises(Refused, match="no model of en-de"):
        command(run)
    outputs.claim(run, "demo", {})
    with pytest.raises(Refused, match="a run of the recipe demo"):
        command(run)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert translate.main(["--run", str(tmp_path)]) == 2
    assert "this folder has no result.json" in capsys.readouterr().err
    (tmp_path / "result.json").write_text(json.dumps({"recipe": "demo"}))
    assert translate.main(["--run", str(tmp_path)]) == 2
    assert "a run of the recipe demo, not of translation_wmt18" in capsys.readouterr().err
