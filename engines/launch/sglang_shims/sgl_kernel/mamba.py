"""The submodule that SGLang imports by name; all of it is missing, as in the package."""

from sgl_kernel import __getattr__

__all__ = ["__getattr__"]
