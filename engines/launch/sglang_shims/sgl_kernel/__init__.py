"""In place of SGLang's compiled CPU kernels, which no package registry carries.

Every name imports and raises when called; the torch-native paths that the server is started with call none.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

__version__ = "0.0.0+none"

import_module("torch")  # SGLang counts on this import's side effects


def __getattr__(name: str) -> Callable[..., NoReturn]:
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*arguments: Any, **options: Any) -> NoReturn:
        raise NotImplementedError(f"sgl_kernel.{name} was not built for this machine")

    return missing
