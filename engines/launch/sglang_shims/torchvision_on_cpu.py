"""Torchvision beside a CPU build of torch.

Its wheel is built for CUDA, so its library of operators does not load, and its import then fails where it describes two
operators that nobody declared. They are declared here first; nothing calls them.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_OPERATORS = ("nms", "qnms")
_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


class Finder(MetaPathFinder):
    """Finds nothing; when torchvision is looked for, its operators are declared before anything of it runs."""

    def __init__(self) -> None:
        self._library: Any = None  # kept: what it declares lives as long as it does

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "torchvision" and self._library is None:
            self._library = import_module("torch").library.Library("torchvision", "DEF")
            for name in _OPERATORS:
                self._library.define(name + _SCHEMA)
        return None


def install() -> None:
    sys.meta_path.insert(0, Finder())
