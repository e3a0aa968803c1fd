"""Make the torch of one Python visible in a virtual environment, and nothing else of it.

    python link_torch.py SITE_PACKAGES

Run by the Python that has the torch. Prints `torch VERSION` when it linked one, nothing when it has none.

Why links: `--system-site-packages` would show all packages of that Python too (another fairseq, a second
copy of this plugin), would not give their commands to .venv/bin, and does not see a torch that sits in
another virtual environment. pip refuses to touch what a link leads to, so the other environment is safe.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

# What a torch build brings that must match it exactly. Everything else .venv installs for itself.
FAMILY = re.compile(r"^(nvidia|cuda|triton|pytorch-triton|torch)", re.IGNORECASE)


def family(name: str, found: dict[str, Distribution]) -> dict[str, Distribution]:
    """The distributions of `name` and of those of its requirements that belong to a torch build."""
    try:
        dist = distribution(name)
    except PackageNotFoundError:
        return found
    found[name] = dist
    for requirement in dist.requires or []:
        required = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
        if FAMILY.match(required) and required not in found:
            family(required, found)
    return found


def entries(dist: Distribution) -> set[Path]:
    """What `dist` put directly into its site-packages: packages, modules, metadata."""
    parts = {Path(str(file)).parts[0] for file in dist.files or []}
    paths = {Path(str(dist.locate_file(part))) for part in parts if part not in ("..", "__pycache__")}
    return {path for path in paths if path.exists()}


def link(site: Path) -> str | None:
    """Link torch, and torchaudio and torchvision where they are, into `site`; the torch version, or None."""
    dists = family("torch", {})
    if "torch" not in dists:
        return None
    for companion in ("torchaudio", "torchvision"):
        family(companion, dists)
    for source in set().union(*map(entries, dists.values())):
        target = site / source.name
        if not target.exists():
            target.unlink(missing_ok=True)  # a link that leads nowhere any more
            target.symlink_to(source.resolve())
    return dists["torch"].version


if __name__ == "__main__":
    version = link(Path(sys.argv[1]))
    if version:
        print(f"torch {version}")
