"""Kill, damage, fill, attack and feed the code with bad data (`make torture`), and write docs/reliability.md.

Each fault is a set of tests, among them the long ones. A fault whose tests have all passed is not repeated.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.faults import table, trials

#: Arguments of pytest for each fault.
FAULTS: dict[str, str] = {
    "kill: training, 40 random moments and inside the writing of checkpoints": "tests/integration/test_killed.py",
    "kill: a recipe at every place": "tests/recipes/test_laws.py -k '(killed_at or stopped or after_a_kill)'",
    "kill: every kind of step of the recipes, whose losses are kept": "tests/recipes/test_laws.py -k every_kind",
    "kill: binarisation, and random moments of it": (
        "tests/data_bin_scripts/test_corpus.py tests/data_bin_scripts/test_parallel.py -k kills"
    ),
    "kill: downloads and copies": ("tests/data_bin_scripts/test_fetch.py tests/compat/test_saving.py -k 'kill or cut'"),
    "damage: checkpoints, binarised data, dictionaries, exported models": (
        "tests/compat/test_checkpoints.py tests/compat/test_data.py tests/integration/test_faults.py "
        "tests/hub/test_exchange_refused.py"
    ),
    "damage: marks of steps, results, records of downloads": (
        "tests/faults/test_parsers.py tests/data_bin_scripts/test_fetch.py "
        "-k 'marks or results or record or emptied or unfinished'"
    ),
    "disk full: checkpoints, binarisation, downloads, recipes, reports": (
        "tests/compat/test_saving.py tests/data_bin_scripts tests/recipes/test_laws.py tests/analysis/test_report.py "
        "-k 'full_disk or no-room or little_space or no_folder or disk_that_fills or failed_write'"
    ),
    "malice: pickles and configurations that run code": (
        "tests/compat/test_checkpoint_names.py tests/integration/test_no_code.py"
    ),
    "malice: archives and servers": ("tests/data_bin_scripts/test_fetch.py -k 'outside or wrong or published'"),
    "malice: folders of the Hub, tokenizers, data, optimizer states": (
        "tests/faults/test_malice.py tests/faults/test_parsers.py -k 'code'"
    ),
    "malice: names, texts and results that control a terminal or a page": (
        "tests/faults/test_malice.py tests/analysis/test_report.py "
        "-k 'terminal or control or names_the_file or hostile or escaped or loads_nothing'"
    ),
    "bad data: fuzzing of every reader of files and options": "tests/faults/test_parsers.py",
    "bad data: options, corpora, questions": (
        "tests/laws/test_option_ranges.py tests/data_bin_scripts/test_corpus.py tests/data_bin_scripts/questions"
    ),
    "concurrency: two runs in one folder": (
        "tests/compat/test_saving.py tests/data_bin_scripts tests/recipes "
        "-k 'two_runs or two_trainings or second_run or only_one or another_run'"
    ),
    "concurrency: read-only folders, folders that disappear": (
        "tests/compat/test_saving.py tests/data_bin_scripts tests/recipes/test_laws.py "
        "tests/analysis/test_report.py -k 'read_only or disappears or cannot_be_created or cannot_be_written'"
    ),
    "numbers: a checkpoint that is kept": "tests/kept",
}


def main() -> int:
    """Run the tests of all faults that no earlier run has finished, and return 1 if a test failed."""
    started = time.monotonic()
    for fault, arguments in FAULTS.items():
        if not table.done(fault):
            trials.count(fault, Path(sys.executable), f"-m '' {arguments}")
    return table.show(FAULTS, started)


if __name__ == "__main__":
    sys.exit(main())
