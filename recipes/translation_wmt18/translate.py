"""Translate raw text, one sentence per line, with a model that a run of the recipe trained.

fairseq-interactive encodes and decodes the run's subwords, so input and output are raw text. The output has one line
for each input line, in the same order. The output line is empty if the input line has no visible character or cannot
be translated. Lines that cannot be translated are also reported, and the exit status is 1.

  recipes/translation_wmt18/translate.sh --run results/en-de < text.en > text.de
  recipes/translation_wmt18/translate.sh --run results/en-de --pos-enc rope --seed 2 text.en > text.de
  recipes/translation_wmt18/translate.sh --run results/all --direction cs-en --buffer-size 1  # answer each line at once
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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO

from recipes.lib import tied
from recipes.lib.machine import executable
from recipes.lib.package import CLOSED
from recipes.lib.recipe import ROOT
from recipes.lib.recipe import shown as shown_from_root
from recipes.lib.settings import as_arguments
from recipes.lib.translation.parallel import SHOWN, faults
from recipes.lib.values import Refused

from .finished import begun
from .plan import Planner
from .ready import default_encoding, refuse_unready

UNSEEN = {"Cc", "Cf", "Zl", "Zp", "Zs"}  # categories of control and format characters and white space
INTERRUPTED = 130  # exit status of a shell after SIGINT
TOO_LONG = (
    "the line has more pieces than the model or --max-source-positions allows. Split the line into shorter sentences."
)


class Closed(Exception):
    """Report that the reader of the translations, such as `head`, has closed the pipe."""


@dataclass
class Order:
    """Write translations in the order of the input lines, with an empty line for each line without a translation.

    Attributes:
        write: Function that writes a line of the output.
        report: Function that prints a message about a line.
        waiting: Lines that have no output yet: the number of each line, and the number that fairseq gives it (None if
            it was not sent).
        sent: Number of lines sent to fairseq.
        refused: Number of lines that were not translated.
        lock: Protects the other attributes, which two threads use.
    """

    write: Callable[[str], None]
    report: Callable[[str], None]
    waiting: deque[tuple[int, int | None]] = field(default_factory=deque)
    sent: int = 0
    refused: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, line: int) -> None:
        """Record that a line is sent to fairseq."""
        with self.lock:
            self.waiting.append((line, self.sent))
            self.sent += 1

    def leave_out(self, line: int, why: str = "") -> None:
        """Record that a line is not sent to fairseq; `why` is the reason, or an empty text if the line is empty."""
        with self.lock:
            if why:
                self._refuse(line, why)
            self.waiting.append((line, None))
            self._settle()

    def receive(self, number: int, text: str) -> None:
        """Write a translation from fairseq. Earlier lines that fairseq skipped count as refused."""
        with self.lock:
            while self.waiting and self.waiting[0][1] != number:
                self._pass_over()
            if not self.waiting:
                raise SystemExit(f"error: fairseq-interactive translated line {number}, which it did not receive.")
            self.waiting.popleft()
            self.write(text)
            self._settle()

    def end(self) -> None:
        """Report the remaining lines as refused, because fairseq has finished."""
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
            self.report(f"line {line}: {why}")


def feed(lines: Iterator[bytes], name: Path, target: IO[bytes], order: Order, failures: list[OSError]) -> None:
    """Send every readable line to fairseq as it arrives.

    Args:
        lines: Lines of the input.
        name: Name of the input, for errors.
        target: Standard input of fairseq-interactive.
        order: Object that writes the output in the order of the lines.
        failures: List to which an error is added if reading or sending fails.
    """
    try:
        with target:
            for number, line in enumerate(lines, start=1):
                line = line.removesuffix(b"\n")
                if problems := faults(name, number, line):
                    order.leave_out(number, "" if problems[0].kind == "empty" else problems[0].what)
                    continue
                if all(unicodedata.category(letter) in UNSEEN for letter in line.decode("utf-8")):
                    order.leave_out(number)  # a model would invent a sentence
                    continue
                order.send(number)
                target.write(line + b"\n")
                target.flush()
    except OSError as error:  # reading failed, or fairseq has ended; its exit status says why
        failures.append(error)
    except (Closed, ValueError):  # the reader has closed the pipe, or we have closed it
        pass


def translations(lines: Iterator[bytes]) -> Iterator[tuple[int, str]]:
    """Yield the line number and the detokenised text of each translation that fairseq-interactive prints."""
    for line in lines:
        if line.startswith(b"D-"):
            name, _, text = line.decode("utf-8").removesuffix("\n").split("\t", 2)
            yield int(name[2:]), text


def serve(command: list[str], source: BinaryIO, name: Path, order: Order, variables: Mapping[str, str]) -> None:
    """Send the input to fairseq-interactive, and write the translations that it returns.

    Args:
        command: Command of fairseq-interactive.
        source: Input text.
        name: Name of the input, for errors.
        order: Object that writes the output in the order of the lines.
        variables: Environment variables of the command.

    Raises:
        SystemExit: Reading failed, or fairseq-interactive failed; the message contains the last lines that it printed.
    """
    environment = {**os.environ, **variables, "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}
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
            lines = errors.read().decode(errors="replace").splitlines()[-10:]
            raise SystemExit("\n".join([*lines, f"error: fairseq-interactive ended with status {process.returncode}."]))
        feeding.join()
    if failures:
        raise SystemExit(f"error: {name}: {failures[0]}")
    order.end()


def chosen(values: list[str], value: str | None, option: str) -> str:
    """Return the value of an option, or the first of the possible values if the option is not given.

    Raises:
        Refused: The value is not one of the possible values.
    """
    if value is None:
        return values[0]
    if value not in values:
        raise Refused(f"{option} {value}: the run has no such model; choose from: {', '.join(values)}")
    return value


def command_of(arguments: argparse.Namespace) -> tuple[list[str], Mapping[str, str]]:
    """Return the command of fairseq-interactive for the chosen model, and the run's environment variables, for
    example for the number of threads.
    """
    run: Path = arguments.run
    source = begun(run, "--run")
    settings = source.settings
    planner = Planner(settings, run.resolve(), shown_from_root(run.resolve()))
    models = planner.models[chosen(list(planner.models), arguments.direction, "--direction")]
    seed = chosen(list(dict.fromkeys(str(model.seed) for model in settings.variants)), arguments.seed, "--seed")
    label = arguments.pos_enc or default_encoding(source, models)
    label = chosen([encoding.label for encoding in settings.encodings], label, "--pos-enc")
    variant = next(model for model in settings.variants if model.encoding.label == label and str(model.seed) == seed)
    refuse_unready(source, models, variant)
    flags = {"buffer-size": arguments.buffer_size, "skip-invalid-size-inputs-valid-test": True, "cpu": arguments.cpu}
    command = [*models.interactive(variant), *as_arguments(flags)]
    print(f"Translating {models.direction.label} with {variant.slug}.", file=sys.stderr)
    return command, settings.variables()


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.prog = "recipes/translation_wmt18/translate.sh"
    option = parser.add_argument
    option("text", nargs="?", type=Path, metavar="FILE", help="Text to translate (default: standard input).")
    option("--run", type=Path, required=True, metavar="DIR", help="Folder (--output) of a run.")
    text = "Position encoding of the model, as in the table of the run (default: the encoding with the highest BLEU)."
    option("--pos-enc", metavar="NAME", help=text)
    text = "Direction of translation (default: the first direction of the run)."
    option("--direction", metavar="SOURCE-TARGET", help=text)
    option("--seed", metavar="N", help="Random seed of the model (default: the first seed of the run).")
    option("--buffer-size", type=int, default=64, metavar="N", help="Number of lines to read before translating them.")
    option("--cpu", action="store_true", help="Use the CPU even if there is a GPU.")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    arguments = parse(words)
    try:
        if arguments.buffer_size < 1:
            raise Refused(f"--buffer-size {arguments.buffer_size}: the value must be at least 1.")
        command, variables = command_of(arguments)
        name = arguments.text or Path("standard input")
        source = arguments.text.open("rb") if arguments.text else sys.stdin.buffer
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
        serve(command, source, name, order, variables)
    except Closed:
        return CLOSED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    if order.refused:
        print(
            f"error: {name}: {order.refused} lines were not translated. In the output, each untranslated line is "
            "empty.",
            file=sys.stderr,
        )
    return 1 if order.refused else 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(status)  # a normal exit could wait for the lock of the feeding thread, which may still wait for a line
