"""Define all position encodings, in plain torch without fairseq. Each encoding has a class in one of these
files and a line in `registry.py`."""

from ..core.base import ABSOLUTE, RELATIVE, Capabilities, Cost, Facts, Layer, PositionEncoding, StackShape
from ..core.compose import Composition, LayerView
from .building import build, get, names, spec_of, specs

__all__ = [
    "ABSOLUTE",
    "RELATIVE",
    "Capabilities",
    "Composition",
    "Cost",
    "Facts",
    "Layer",
    "LayerView",
    "PositionEncoding",
    "StackShape",
    "build",
    "get",
    "names",
    "spec_of",
    "specs",
]
