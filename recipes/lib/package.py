"""Load files that recipes and data scripts share with the package.

The files are loaded one by one, because importing the package needs torch, and `--help`, `--list` and `--dry-run` must
work without torch.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairseq_posenc.analysis.results import interval as interval
    from fairseq_posenc.core.closed_pipe import CLOSED as CLOSED
    from fairseq_posenc.core.closed_pipe import discard_output as discard_output
    from fairseq_posenc.core.locking import locked as locked
    from fairseq_posenc.core.reading import NotTextError as NotTextError
    from fairseq_posenc.core.reading import colon_problem as colon_problem
    from fairseq_posenc.core.reading import is_utf16 as is_utf16
    from fairseq_posenc.core.reading import read_lines as read_lines
    from fairseq_posenc.core.reading import read_utf8 as read_utf8
    from fairseq_posenc.core.reading import utf16_problem as utf16_problem
    from fairseq_posenc.core.refusal import InputError as InputError
    from fairseq_posenc.core.syntax import parse_spec as parse_spec
    from fairseq_posenc.core.training_log import Curve as Curve
    from fairseq_posenc.core.training_log import Divergence as Divergence
    from fairseq_posenc.core.training_log import Points as Points
    from fairseq_posenc.core.training_log import read_divergence as read_divergence
    from fairseq_posenc.core.training_log import read_losses as read_losses
    from fairseq_posenc.core.training_log import read_parameters as read_parameters
    from fairseq_posenc.core.training_log import read_validations as read_validations
    from fairseq_posenc.core.words import nearest as nearest
    from fairseq_posenc.core.words import suggestion as suggestion
    from fairseq_posenc.core.words import visible as visible
    from fairseq_posenc.core.words import vocabulary_problem as vocabulary_problem
    from fairseq_posenc.core.writing import FULL as FULL
    from fairseq_posenc.core.writing import NoSpaceError as NoSpaceError
    from fairseq_posenc.core.writing import free_bytes as free_bytes
    from fairseq_posenc.core.writing import named_when_full as named_when_full
    from fairseq_posenc.core.writing import whole as whole
    from fairseq_posenc.core.writing import whole_folder as whole_folder
    from fairseq_posenc.core.writing import write_whole as write_whole
    from fairseq_posenc.encodings.registry import ENCODINGS as ENCODINGS
    from fairseq_posenc.encodings.registry import kind_of as kind_of
    from fairseq_posenc.papers.matching import PRETRAINED as PRETRAINED
    from fairseq_posenc.papers.matching import are_those_of as are_those_of
    from fairseq_posenc.papers.matching import option_values as option_values
    from fairseq_posenc.papers.reading import Figure as Figure
    from fairseq_posenc.papers.reading import figures as figures
    from fairseq_posenc.papers.reading import tables as tables
else:
    PACKAGE = Path(__file__).resolve().parents[2] / "fairseq_posenc"
    SHARED = {
        "analysis/results.py": ("interval",),
        "core/reading.py": (
            *("NotTextError", "colon_problem", "is_utf16"),
            *("read_lines", "read_utf8", "utf16_problem"),
        ),
        "core/closed_pipe.py": ("CLOSED", "discard_output"),
        "core/locking.py": ("locked",),
        "core/training_log.py": (
            *("Curve", "Divergence", "Points"),
            *("read_divergence", "read_losses", "read_parameters", "read_validations"),
        ),
        "core/refusal.py": ("InputError",),
        "core/words.py": ("nearest", "suggestion", "visible", "vocabulary_problem"),
        "core/syntax.py": ("parse_spec",),  # it imports the two files above it
        "core/writing.py": (
            *("FULL", "NoSpaceError", "free_bytes", "named_when_full"),
            *("whole", "whole_folder", "write_whole"),
        ),
        "encodings/registry.py": ("ENCODINGS", "kind_of"),
        "papers/matching.py": ("PRETRAINED", "are_those_of", "option_values"),
        "papers/reading.py": ("Figure", "figures", "tables"),
    }
    for file, names in SHARED.items():
        specification = importlib.util.spec_from_file_location(f"{__name__}.{Path(file).stem}", PACKAGE / file)
        module = importlib.util.module_from_spec(specification)
        sys.modules[module.__name__] = module  # dataclasses look up annotations there
        specification.loader.exec_module(module)
        globals().update({name: getattr(module, name) for name in names})
