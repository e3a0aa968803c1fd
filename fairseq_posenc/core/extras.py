"""Import packages that only scores need when a score is computed. setup.py has these packages in the extra `scores`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .refusal import InputError

#: Packages that pip and Python call by different names.
PACKAGES = {"sklearn": "scikit-learn"}


def extra(module: str, use: str) -> Any:
    """Import a module of a package that is needed for `use` only.

    Raises:
        InputError: The package is not installed. The error says which package to install.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        name = (error.name or module).partition(".")[0]
        package = PACKAGES.get(name, name)
        raise InputError(
            f"{use} needs the package {package}, which is not installed. Run: pip install {package}"
        ) from None
