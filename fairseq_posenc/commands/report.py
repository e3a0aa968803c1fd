"""`python -m fairseq_posenc report`: write a page that compares the results of recipes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ..analysis.report.charts import BokehMissingError
from ..analysis.report.page import page
from ..analysis.report.runs import read_runs
from ..analysis.report.tables import to_csv, to_latex
from ..analysis.results import ResultsError
from ..core.arguments import Parser
from ..core.refusal import described
from ..core.words import visible
from ..core.writing import write_all_whole

EPILOG = """\
example:
  python -m fairseq_posenc report results/demo results/lm_wikitext103 --output results/report.html

The page loads nothing from the network. The main table of the page is also written as CSV and LaTeX (FILE.csv and
FILE.tex)."""


def _parser() -> Parser:
    parser = Parser(
        prog="python -m fairseq_posenc report",
        description="Write a page that compares runs of recipes: their scores, losses, costs, figures and commands.",
        epilog=EPILOG,
    )
    add = parser.add_argument
    add("results", type=Path, nargs="+", metavar="RESULTS", help="Output folder of a recipe, or its results.json.")
    add("--output", type=Path, required=True, metavar="FILE", help="Page to write; its name must end in .html.")
    return parser


def main(argv: Sequence[str]) -> int:
    """Write the page about the results that the command line names. Return 0, or 1 after printing a one-line error."""
    parser = _parser()
    options = parser.parse_args(argv)
    output: Path = options.output
    if output.suffix != ".html":
        parser.error(f"--output {output}: the name must end in .html. Try {output.with_suffix('.html')}.")
    try:
        runs = read_runs(options.results)
        entries = [entry for run in runs for entry in run.entries]
        texts = {".csv": to_csv(entries), ".tex": to_latex(entries), ".html": page(runs)}
        write_all_whole({output.with_suffix(suffix): text for suffix, text in texts.items()})
    except (ResultsError, BokehMissingError, OSError) as error:
        print(f"report: {visible(described(error))}", file=sys.stderr)
        return 1
    rows = "1 row" if len(entries) == 1 else f"{len(entries)} rows"
    stem, count = output.with_suffix(""), f"{len(runs)} run{'s' * (len(runs) != 1)}"
    print(f"report: wrote {output} with {rows} of {count}, and its main table as {stem}.csv and {stem}.tex")
    return 0
