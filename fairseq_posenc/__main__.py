"""Run `python -m fairseq_posenc COMMAND`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from .core.closed_pipe import discard_output

COMMANDS = {
    "list": ("commands.listing", "Show the position encodings, their papers, options and capabilities."),
    "params": ("commands.params", "Count the parameters of each encoding and compare them with the papers."),
    "docs": ("commands.pages", "Write the page of each encoding and the tables of docs/which-encoding.md."),
    "figures": ("commands.figures", "Draw the figures of the papers from checkpoints, data and results."),
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


def usage() -> str:
    """Return the usage text, with one line per command."""
    lines = [f"  {name:<13} {help}" for name, (_, help) in COMMANDS.items()]
    return (
        "usage: python -m fairseq_posenc COMMAND [options]\n       python -m fairseq_posenc --version\n\n"
        + "\n".join(lines)
    )


def main(argv: Sequence[str]) -> int:
    """Run a command and return its exit status."""
    if argv and argv[0] in ("-h", "--help"):
        print(usage())
        return 0
    if argv and argv[0] == "--version":
        from . import __version__

        print(f"fairseq_posenc {__version__}")
        return 0
    if not argv or argv[0] not in COMMANDS:
        print(f"unknown command {argv[0]!r}\n" if argv else "no command given\n", usage(), sep="\n", file=sys.stderr)
        return 2
    if argv[0] not in ALWAYS and (refusal := import_module(".commands.doctor.imported", __package__).refusal()):
        print(refusal, file=sys.stderr)
        return 1
    run: Callable[[Sequence[str]], int] = import_module(f".{COMMANDS[argv[0]][0]}", __package__).main
    try:
        status = run(argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # a reader such as `head` stopped reading
        return discard_output()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
