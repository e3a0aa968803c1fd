"""`python -m fairseq_posenc doctor [--json]`: check this installation, and explain how to repair it.

Importing this package imports neither torch nor fairseq, so that the checks can report that torch or fairseq is broken.
To add a check, write a pure function that computes a `Check` from its arguments, in one of the files of this package.
Then call the function in `all_checks`.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

from ...core.arguments import Parser
from ...core.quiet import importing_fairseq
from . import apex, imported, machine, plugin, report, stack
from .report import Check

__all__ = ["Check", "all_checks", "main"]


def all_checks() -> list[Check]:
    """Run all checks on this machine, in the order in which they are printed. The checks import torch and fairseq."""
    packages = stack.stack_checks()
    gpus = stack.gpu_names()
    build = None if stack.import_error("torch") else stack.cuda_build()
    return [
        *machine.machine_checks(sys.version_info[:3], os.getcwd()),
        machine.check_gpu(build, gpus, machine.has_nvidia_driver()),
        *packages,
        apex.check_apex(apex.probe(), bool(gpus)),
        plugin.plugin_check(),
        imported.import_check(),
    ]


def main(argv: Sequence[str]) -> int:
    """Print the results of all checks. Return 1 if a check fails."""
    parser = Parser(
        prog="python -m fairseq_posenc doctor", description="Check this installation, and explain how to repair it."
    )
    parser.add_argument("--json", action="store_true", help="Print the results as a JSON list and nothing else.")
    options = parser.parse_args(argv)
    # Packages print while they are imported; this must not mix with the answer on stdout.
    with contextlib.redirect_stdout(sys.stderr), importing_fairseq():
        checks = all_checks()
    print(report.as_json(checks) if options.json else report.as_text(checks))
    return int(any(check.status == "fail" for check in checks))
