"""List the kinds of subwords for tests. `make setup` leaves fastBPE out if it cannot be compiled.

PYTEST_DONT_REWRITE: it asserts nothing.
"""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from recipes.lib.translation import subwords

NEEDS_FASTBPE = pytest.mark.skipif(find_spec("fastBPE") is None, reason="fastBPE is not installed")
KINDS = [pytest.param(kind, marks=NEEDS_FASTBPE if kind == "fastbpe" else ()) for kind in subwords.TOKENIZERS]
