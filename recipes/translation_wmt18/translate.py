"""Translate raw text, one sentence per line, with a model that a run of the recipe trained.

fairseq-interactive applies the run's subwords and undoes them, so input and output are raw text. The output has a line
for every line of the input, in the same order. It is empty for lines that are empty or have no visible character (such
as U+200B), and for lines that cannot be translated. The latter are reported, and make the exit status 1.

  recipes/translation_wmt18/translate.sh --run results/en-de < text.en > text.de
  recipes/translation_wmt18/translate.sh --run results/en-de --pos-enc rope --seed 2 text.en > text.de
  recipes/translation_wmt18/translate.sh --run results/all --direction cs-en --buffer-size 1     # a line at a time
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import unicodedata
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO

from recipes.lib import tied
from recipes.lib.machine import executable
from recipes.lib.package import nearest
from recipes.lib.recipe import ROOT
from recipes.lib.recipe import shown as shown_from_root
from recipes.lib.settings import as_arguments
from recipes.lib.translation.parallel import SHOWN, faults
from recipes.lib.values import Refused

from .__main__ import best
from .finished import finished
from .plan import Planner

UNSEEN = {"Cc", "Cf", "Zl", "Zp", "Zs"}  # categories of control and format characters and white space
INTERRUPTED, CLOSED = 130, 141  # exit statuses of a shell after SIGINT and SIGPIPE
TOO_LONG = "more pieces than the model or --max-source-positions has room for"


class Closed(Exception):
    """The reader of the translations, such as `head`, has closed the pipe."""


@dataclass
class Order:
    """Write translations in the order of the input lines, with an empty line for each line without a translation.

    Args:
        write: Writes a line of the output.
        tell: Prints a message about a line.
    """

    write: Callable[[str], None]
    tell: Callable[[str], None]
    waiting: deque[tuple[int, int | None]] = field(default_factory=deque)  # line, and its number in fairseq or None
    sent: int = 0
    refused: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, line: int) -> None:
        """Note that a line goes to fairseq."""
        with self.lock:
            self.waiting.append((line, self.sent))
            self.sent += 1

    def leave_out(self, line: int, why: str = "") -> None:
        """Note that a line does not go to fairseq because it is empty, or because of `why`."""
        with self.lock:
            if why:
                self._refuse(line, why)
            self.waiting.append((line, None))
            self._settle()

    def receive(self, number: int, text: str) -> None:
        """Take a translation of fairseq; the waiting lines before it were skipped by fairseq, and are refused."""
        with self.lock:
            while self.waiting and self.waiting[0][1] != number:
                self._pass_over()
            if not self.waiting:
                raise SystemExit(f"error: fairseq-interactive translated a line {number} that it was not given")
            self.waiting.popleft()
            self.write(text)
            self._settle()

    def end(self) -> None:
        """Refuse the remaining lines, because fairseq has finished."""
        with self.lock:
            while self.waiting:
                self._pass_over()

    def _settle(self) -> None:
        while self.waiting and self.waiting[0][1] is None:
            self._pass_over()

    def _pass_over(self) -> None:
        line, number = self.waiting.popleft()
        if number is not None:
            self._refuse(line, TOO_LONG)
        self.write("")

    def _refuse(self, line: int, why: str) -> None:
        self.refused += 1
        if self.refused <= SHOWN:
            self.tell(f"line {line}: {why}")


def feed(lines: Iterator[bytes], name: Path, target: IO[bytes], order: Order, failures: list[OSError]) -> None:
    """Send every readable line to fairseq as it arrives.

    Args:
        lines: Lines of the input.
        name: Name of the input, for errors.
        target: Standard input of fairseq-interactive.
        order: Order of the lines.
        failures: Receives the error that stopped the input.
    """
    try:
        with target:
            for number, line in enumerate(lines, start=1):
                line = line.removesuffix(b"\n")
                if found := faults(name, number, line):
                    order.leave_out(number, "" if found[0].kind == "empty" else found[0].what)
                    continue
                if all(unicodedata.category(letter) in UNSEEN for letter in line.decode("utf-8")):
                    order.leave_out(number)  # a model would invent a sentence
                    continue
                order.send(number)
                target.write(line + b"\n")
                target.flush()
    except OSError as error:  # reading failed, or fairseq has ended, whose status says why
        failures.append(error)
    except (Closed, ValueError):  # the reader has gone, or the pipe was closed on purpose
        pass


def translations(lines: Iterator[bytes]) -> Iterator[tuple[int, str]]:
    """Yield number and detokenised text of each translation that fairseq-interactive prints."""
    for line in lines:
        if line.startswith(b"D-"):
            name, _, text = line.decode("utf-8").removesuffix("\n").split("\t", 2)
            yield int(name[2:]), text


def serve(command: list[str], source: BinaryIO, name: Path, order: Order) -> None:
    """Send the input to fairseq-interactive, and write its translations.

    Raises:
        SystemExit: fairseq-interactive failed; the message has its last lines. Or reading failed.
    """
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}
    words = [executable(command[0]), *command[1:]]
    failures: list[OSError] = []
    with tempfile.TemporaryFile() as errors:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
        with tied.start(words, cwd=ROOT, env=environment, **pipes) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            feeding = threading.Thread(target=feed, args=(source, name, process.stdin, order, failures), daemon=True)
            feeding.start()
            try:
                for number, text in translations(process.stdout):
                    order.receive(number, text)
            except BaseException:
                process.terminate()  # otherwise it would translate all of its input
                feeding.join(1)  # the thread may find the pipe broken; two threads must not close it at once
                raise
        if process.returncode:
            errors.seek(0)
            told = errors.read().decode(errors="replace").splitlines()[-10:]
            raise SystemExit("\n".join([*told, f"error: fairseq-interactive ended with status {process.returncode}"]))
        feeding.join()
    if failures:
        raise SystemExit(f"error: {name}: {failures[0]}")
    order.end()


def chosen(values: list[str], wanted: str | None, option: str) -> str:
    """Return the wanted value, or the first one if none is given.

    Raises:
        Refused: The wanted value is not available.
    """
    if wanted is None:
        return values[0]
    if wanted not in values:
        raise Refused(f"{option} {wanted}: the run has no such model{nearest(wanted, values)}")
    return wanted


def command_of(asked: argparse.Namespace) -> list[str]:
    """Return the command of fairseq-interactive for the chosen model."""
    settings = finished(asked.run, "--run").settings
    planner = Planner(settings, asked.run.resolve(), shown_from_root(asked.run.resolve()))
    models = planner.models[chosen(list(planner.models), asked.direction, "--direction")]
    seeds = list(dict.fromkeys(str(one.seed) for one in settings.variants))
    seed = chosen(seeds, asked.seed, "--seed")
    label = asked.pos_enc or best(settings, asked.run, models.direction.label)
    label = chosen([one.label for one in settings.encodings], label, "--pos-enc")
    variant = next(one for one in settings.variants if one.encoding.label == label and str(one.seed) == seed)
    flags = {"buffer-size": asked.buffer_size, "skip-invalid-size-inputs-valid-test": True, "cpu": asked.cpu}
    command = [*models.interactive(variant), *as_arguments(flags)]
    print(f"{models.direction.label}, {label}: {variant.slug}", file=sys.stderr)
    return command


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.prog = "recipes/translation_wmt18/translate.sh"
    parser.add_argument("text", nargs="?", type=Path, metavar="FILE", help="default: standard input")
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="the --output of a finished run")
    parser.add_argument("--pos-enc", metavar="LABEL", help="as the run has it (default: its best)")
    parser.add_argument("--direction", metavar="SOURCE-TARGET", help="of a run with several (default: its first)")
    parser.add_argument("--seed", metavar="N", help="of a run with several (default: its first)")
    parser.add_argument("--buffer-size", type=int, default=64, metavar="N", help="lines read before any is translated")
    parser.add_argument("--cpu", action="store_true", help="also where there is a GPU")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    asked = parse(words)
    try:
        if asked.buffer_size < 1:
            raise Refused(f"--buffer-size is {asked.buffer_size}: 1 or more is wanted")
        command = command_of(asked)
        name = asked.text or Path("standard input")
        source = asked.text.open("rb") if asked.text else sys.stdin.buffer
    except (Refused, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2

    def write(line: str) -> None:
        try:
            sys.stdout.buffer.write(line.encode() + b"\n")
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise Closed from None

    order = Order(write, lambda message: print(f"error: {name}: {message}", file=sys.stderr))
    try:
        serve(command, source, name, order)
    except Closed:
        return CLOSED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    if order.refused:
        print(f"error: {name}: {order.refused} lines were not translated; theirs are empty", file=sys.stderr)
    return 1 if order.refused else 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(status)  # a normal exit could wait for the lock of the feeding thread, which may still wait for a line
