"""Import the functions that data scripts share with the recipes and the package, and hash files."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

from recipes.lib import tied as tied  # noqa: E402
from recipes.lib.package import FULL as FULL  # noqa: E402
from recipes.lib.package import NoSpaceError as NoSpaceError  # noqa: E402
from recipes.lib.package import NotTextError as NotTextError  # noqa: E402
from recipes.lib.package import colon_problem as colon_problem  # noqa: E402
from recipes.lib.package import free_bytes as free_bytes  # noqa: E402
from recipes.lib.package import is_utf16 as is_utf16  # noqa: E402
from recipes.lib.package import locked as locked  # noqa: E402
from recipes.lib.package import named_when_full as named_when_full  # noqa: E402
from recipes.lib.package import nearest as nearest  # noqa: E402
from recipes.lib.package import read_lines as read_lines  # noqa: E402
from recipes.lib.package import read_utf8 as read_utf8  # noqa: E402
from recipes.lib.package import suggestion as suggestion  # noqa: E402
from recipes.lib.package import utf16_problem as utf16_problem  # noqa: E402
from recipes.lib.package import visible as visible  # noqa: E402
from recipes.lib.package import vocabulary_problem as vocabulary_problem  # noqa: E402
from recipes.lib.package import whole as whole  # noqa: E402
from recipes.lib.package import whole_folder as whole_folder  # noqa: E402
from recipes.lib.package import write_whole as write_whole  # noqa: E402


def digest(path: Path, algorithm: str = "sha256") -> str:
    """Return the hash of a file's content, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()
