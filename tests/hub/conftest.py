"""Skip these tests where the packages are missing that they all need."""

from __future__ import annotations

import pytest

pytest.importorskip("fairseq")
pytest.importorskip("transformers")
