"""Write what the documentation and the recipes derive from the code: `python docs/_generate`, without arguments."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # because this folder is a script

import generated

from fairseq_posenc.core.writing import write_whole


def main() -> int:
    """Write each generated file that is not current. Return 1 if a block of a page cannot be filled."""
    try:
        files = generated.files()
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    for path in generated.surplus(files):
        print(f"{path.relative_to(generated.ROOT)}: the registry has no such encoding. Delete this page.")
    for path, text in files.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            write_whole(path, text)
            print(f"{path.relative_to(generated.ROOT)}: updated")
    return 0


if __name__ == "__main__":
    sys.exit(main())
