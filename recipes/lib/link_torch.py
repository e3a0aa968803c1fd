"""Link the torch of another Python into a virtual environment, without the other packages of that Python.

    python link_torch.py SITE_PACKAGES

Run this script with the Python that has torch. The script prints `torch VERSION` if it linked torch, otherwise nothing.

Links are better than `--system-site-packages`, which would also show all other packages of that Python (another
fairseq, a second copy of this plugin). With `--system-site-packages`, .venv/bin would lack torch's commands, and torch
in another virtual environment would not be found. Moreover, pip does not change files behind a link, so the other
environment is safe.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

# Packages that belong to a torch build and must match it exactly. All other packages are installed in .venv.
FAMILY = re.compile(r"^(nvidia|cuda|triton|pytorch-triton|torch)", re.IGNORECASE)


def family(name: str, distributions: dict[str, Distribution]) -> dict[str, Distribution]:
    """Add a package to `distributions`, and also the packages of `FAMILY` that it requires. Return `distributions`."""
    try:
        dist = distribution(name)
    except PackageNotFoundError:
        return distributions
    distributions[name] = dist
    for requirement in dist.requires or []:
        required = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
        if FAMILY.match(required) and required not in distributions:
            family(required, distributions)
    return distributions


def entries(dist: Distribution) -> set[Path]:
    """Return the top-level paths of a distribution in site-packages: its packages, modules and metadata."""
    parts = {Path(str(file)).parts[0] for file in dist.files or []}
    paths = {Path(str(dist.locate_file(part))) for part in parts if part not in ("..", "__pycache__")}
    return {path for path in paths if path.exists()}


def link(site: Path) -> str | None:
    """Link torch and, if present, torchaudio and torchvision into `site`. Return the version of torch, or None."""
    dists = family("torch", {})
    if "torch" not in dists:
        return None
    for companion in ("torchaudio", "torchvision"):
        family(companion, dists)
    for source in set().union(*map(entries, dists.values())):
        target = site / source.name
        if not target.exists():
            target.unlink(missing_ok=True)  # a link whose target no longer exists
            target.symlink_to(source.resolve())
    return dists["torch"].version


if __name__ == "__main__":
    version = link(Path(sys.argv[1]))
    if version:
        print(f"torch {version}")
