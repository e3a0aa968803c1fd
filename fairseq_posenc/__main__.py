"""Run `python -m fairseq_posenc COMMAND`, or `fairseq-posenc COMMAND` where the package is installed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from .core.arguments import Parser
from .core.closed_pipe import discard_output

COMMANDS = {
    "list": ("commands.listing", "Show the position encodings, their papers, options and capabilities."),
    "params": ("commands.params", "Count the parameters of each encoding and compare them with the papers."),
    "figures": ("commands.figures", "Draw figures of the papers from checkpoints and data."),
    "report": ("commands.report", "Write a page that compares the results of recipes in tables, charts and figures."),
    "doctor": ("commands.doctor", "Check this installation and explain how to repair it."),
    "path": ("commands.path", "Print the folder of this package, for fairseq's --user-dir."),
    "average": ("commands.average", "Average the parameters of several checkpoints."),
    "generate-text": ("commands.generate_text", "Continue prompts with a language model."),
    "import-hf": (
        "hub.import_hf",
        "Convert a BERT, RoBERTa or GPT-2 model to fairseq, with any position encoding.",
    ),
    "export-hf": ("hub.export_hf", "Export a masked or plain language model for transformers and fairseq_posenc.load."),
}
#: Commands that import nothing but their own modules, so they run even if this installation is broken.
ALWAYS = ("doctor", "path")

EXAMPLES = """\
examples:
  python -m fairseq_posenc list 'm4[clip=64]' t5
  python -m fairseq_posenc params --arch posenc_transformer_small --pos-enc 'shaw[clip=16]+t5'
  fairseq-train DATA --user-dir "$(python -m fairseq_posenc path)" --arch posenc_transformer_small --pos-enc rope ...

`python -m fairseq_posenc COMMAND --help` shows the flags of a command."""


class _Command(argparse.ArgumentParser):
    """Take all words that follow the name of a command.

    The module of the command parses them. It is imported only then, because most commands need torch.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        return argparse.Namespace(words=list(args)), []


def _parser() -> Parser:
    parser = Parser(
        prog="python -m fairseq_posenc",
        description="Use any position encoding in fairseq, PyTorch and transformers.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--version", action="store_true", help="Print the version of the package.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", parser_class=_Command)
    for name, (_, text) in COMMANDS.items():
        commands.add_parser(name, help=text)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that `argv`, or else the command line, names. Return its exit status."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.version:
        from . import __version__  # missing if Python imports the clone instead of the package in it, see `imported.py`

        print(f"fairseq_posenc {__version__}")
        return 0
    if arguments.command is None:
        parser.print_help(sys.stderr)
        return 2
    if arguments.command not in ALWAYS and (
        refusal := import_module(".commands.doctor.imported", __package__).refusal()
    ):
        print(refusal, file=sys.stderr)
        return 1
    run: Callable[[Sequence[str]], int] = import_module(f".{COMMANDS[arguments.command][0]}", __package__).main
    try:
        status = run(arguments.words)
        sys.stdout.flush()
    except BrokenPipeError:  # a reader such as `head` stopped reading
        return discard_output()
    return status


if __name__ == "__main__":
    sys.exit(main())
