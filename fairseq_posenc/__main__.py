"""Run `python -m fairseq_posenc COMMAND`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module

COMMANDS = {
    "list": ("commands.listing", "the position encodings, their papers, options and capabilities"),
    "params": ("commands.params", "parameters of each encoding, beside what the papers print"),
    "drift": ("commands.drift", "what half precision and autocast do to each encoding"),
    "bench": ("commands.bench", "what each encoding costs, relative to none"),
    "cost": ("commands.bench.page", "write the page on cost, of what bench measured"),
    "docs": ("commands.pages", "write a page for every encoding, and what docs/which-encoding.md derives"),
    "doctor": ("commands.doctor", "check this installation, and say how to mend what is wrong"),
    "path": ("commands.path", "the folder for --user-dir"),
    "average": ("commands.average", "average checkpoints"),
    "import-hf": ("hub.import_hf", "a pretrained BERT or RoBERTa with any position encoding, for fairseq"),
    "export-hf": ("hub.export_hf", "a masked language model for fairseq_posenc.load and Hugging Face"),
}
#: Commands that import nothing but their own modules, so they run even if this installation is broken.
ALWAYS = ("doctor", "path")


def usage() -> str:
    """Return the usage text, with one line per command."""
    lines = [f"  {name:<9} {help}" for name, (_, help) in COMMANDS.items()]
    return "usage: python -m fairseq_posenc COMMAND [options]\n\n" + "\n".join(lines)


def main(argv: Sequence[str]) -> int:
    """Run a command and return its exit status."""
    if argv and argv[0] in ("-h", "--help"):
        print(usage())
        return 0
    if not argv or argv[0] not in COMMANDS:
        print(f"unknown command {argv[0]!r}\n" if argv else "no command given\n", usage(), sep="\n", file=sys.stderr)
        return 2
    if argv[0] not in ALWAYS and (refusal := import_module(".commands.doctor.imported", __package__).refusal()):
        print(refusal, file=sys.stderr)
        return 1
    run: Callable[[Sequence[str]], int] = import_module(f".{COMMANDS[argv[0]][0]}", __package__).main
    return run(argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
