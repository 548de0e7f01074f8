"""Triton for a machine without a GPU: everything imports, decorators pass their function on, nothing compiles.

SGLang and torch import Triton (1 GB) wherever they define GPU kernels, and call none of them on a CPU.
"""

import importlib.util
import sys
from collections.abc import Callable, MutableSequence, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class StandIn(ModuleType):
    """A module in which every name exists: a class where it is capitalised, else a module that is also a decorator."""

    __path__: MutableSequence[str] = []  # a package: anything may be imported from below it

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = (
            type(name, (), {"__module__": self.__name__}) if name[0].isupper() else StandIn(f"{self.__name__}.{name}")
        )
        setattr(self, name, made)
        return made

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """As `@jit` and as `@jit(...)`: the function comes back unchanged."""
        if len(arguments) == 1 and callable(arguments[0]) and not options:
            return arguments[0]
        return _unchanged

    def __bool__(self) -> bool:
        return False


class Constexpr:
    """`tl.constexpr`: used as an annotation, and around a value."""

    def __init__(self, value: Any = None) -> None:
        self.value = value


class Config:
    """`triton.Config`: what one variant of an autotuned kernel is made with."""

    def __init__(
        self, kwargs: dict[str, Any] | None = None, num_warps: int = 4, num_stages: int = 2, **rest: Any
    ) -> None:
        self.kwargs = kwargs or {}
        self.num_warps = num_warps
        self.num_stages = num_stages


class Finder(MetaPathFinder, Loader):
    """Answers every import of `triton` and below with a stand-in."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "triton":
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        if values := _VALUES.get(module.__name__):
            vars(module).update(values)


def install() -> None:
    """Stand in, unless the real one is here."""
    if importlib.util.find_spec("triton") is None:
        sys.meta_path.insert(0, Finder())


def _unchanged(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def _ceiling_division(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)


def _next_power_of_2(number: int) -> int:
    return 1 << (number - 1).bit_length() if number > 0 else 1


# The few names that are evaluated while modules are imported.
_VALUES: dict[str, dict[str, Any]] = {
    "triton": {
        "__version__": "3.0.0",
        "Config": Config,
        "cdiv": _ceiling_division,
        "next_power_of_2": _next_power_of_2,
    },
    "triton.language": {"constexpr": Constexpr},
}
