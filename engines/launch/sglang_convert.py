"""Turn the demo model's file into a folder that SGLang serves: `python -m engines.launch.sglang_convert OUT_DIR`.

Runs in SGLang's environment. The weights become bfloat16, about 260 MB; takes about 10 s.
"""

import shutil
import sys
from importlib import import_module
from pathlib import Path

from engines.launch import model_file


def convert(target: Path) -> None:
    """Write the folder `target`, complete or not at all; does nothing where it exists."""
    if target.exists():
        return
    transformers, torch = import_module("transformers"), import_module("torch")
    gguf = model_file.path()
    draft = target.with_name(f"{target.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.bfloat16,
        quantization_config=transformers.GgufConfig(gguf_file=gguf.name, dequantize=True),
    )
    # It is a plain model now: what still says otherwise would be written into its configuration.
    for attribute in ("quantization_config", "_pre_quantization_dtype"):
        if hasattr(model.config, attribute):
            delattr(model.config, attribute)
    model.is_quantized = False
    model.hf_quantizer = None
    model.save_pretrained(draft)
    transformers.AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(draft)
    draft.rename(target)


if __name__ == "__main__":
    convert(Path(sys.argv[1]))
