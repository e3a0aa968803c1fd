"""Parse the command lines of `import-hf` and `export-hf`, and print their results and errors."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

from ..compat.checkpoints import CheckpointError
from ..core.arguments import Parser
from ..core.refusal import described
from ..core.words import visible


def parser(name: str, description: str, examples: str, source: str, source_help: str) -> Parser:
    """Return a parser for a source and --output.

    Args:
        name: Name of the command.
        description: What the command does.
        examples: Text below the list of flags.
        source: Placeholder of the source in the help text.
        source_help: Description of the source.
    """
    new = Parser(prog=f"python -m fairseq_posenc {name}", description=description, epilog=examples)
    new.add_argument("source", metavar=source, type=Path, help=source_help)
    new.add_argument(
        "--output", required=True, type=Path, metavar="DIR", help="Folder to write, which must be new or empty."
    )
    return new


def run(command: Parser, argv: Sequence[str], work: Callable[[Namespace], list[str]]) -> int:
    """Print the lines that `work` returns, and return 0, or print an error message of one line and return 1."""
    args, name = command.parse_args(argv), command.prog.split()[-1]
    try:
        print("\n".join(work(args)))
    except ModuleNotFoundError as error:
        cure = "Install it; `python -m fairseq_posenc doctor` checks the installation."
        print(f"{name}: {error}. {cure}", file=sys.stderr)
        return 1
    except (CheckpointError, ValueError, OSError) as error:
        text = described(error)
        where = f"{args.source}: " if isinstance(error, CheckpointError) and str(args.source) not in text else ""
        print(f"{name}: {where}{visible(text)}", file=sys.stderr)
        return 1
    return 0
