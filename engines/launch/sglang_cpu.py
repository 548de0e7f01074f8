"""The real SGLang server on a CPU, serving the demo model: `python -m engines.launch.sglang_cpu --port N [FLAG ...]`.

Runs in the environment that `make sglang` sets up, and becomes SGLang's own server process; further flags are passed to
it. Ready after about a minute. Unmodified but for what no CPU has (`sglang_shims/`).
"""

import argparse
import os
import sys
from pathlib import Path

from engines.launch import model_file

_HERE = Path(__file__).resolve().parent
SHIMS = _HERE / "sglang_shims"
ROOT = _HERE.parents[1]

# What Headrace relies on, on any hardware.
GATEWAY_FLAGS = [
    "--enable-metrics",
    "--enable-cache-report",
    "--enable-priority-scheduling",
    "--schedule-policy=fcfs",  # the default policy refuses priorities
    "--default-priority-value=0",
    "--load-snapshot-publish-interval=1",
    "--tokenizer-metrics-custom-labels-header=x-custom-labels",
    "--tokenizer-metrics-allowed-custom-labels=tenant",
]

# What a CPU needs. Without --sleep-on-idle an idle server takes a whole core.
CPU_FLAGS = [
    "--device=cpu",
    "--attention-backend=torch_native",
    "--sampling-backend=pytorch",
    "--grammar-backend=none",
    "--dtype=bfloat16",
    "--disable-cuda-graph",
    "--disable-overlap-schedule",
    "--max-total-tokens=32768",
    "--max-running-requests=16",
    "--sleep-on-idle",
]


class CannotRun(Exception):
    """The environment or the model is missing; the text says how to make it."""


def model_folder(environment: Path) -> Path:
    return environment / "model"


def check(environment: Path) -> None:
    """Raise CannotRun unless `environment` is complete: the converted model is the last thing `make sglang` writes."""
    if not model_folder(environment).is_dir():
        raise CannotRun(f"SGLang is not set up in {environment}: run `make sglang` (about 2 GB)")


def command(environment: Path) -> list[str]:
    """What starts the server; add `--port N`. ROOT has to be on PYTHONPATH."""
    return [str(environment / "bin" / "python"), "-m", "engines.launch.sglang_cpu"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="engines.launch.sglang_cpu", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    options, further = parser.parse_known_args()
    environment = Path(sys.prefix)
    try:
        check(environment)
    except CannotRun as error:
        sys.exit(str(error))
    variables = {
        "PYTHONPATH": str(SHIMS),
        "SGLANG_USE_CPU_ENGINE": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    }
    inherited = {
        name: value for name, value in os.environ.items() if name != "PROMETHEUS_MULTIPROC_DIR"
    }  # Headrace's own
    server = [sys.executable, "-m", "sglang.launch_server", "--host=127.0.0.1", f"--port={options.port}"]
    model = [f"--model-path={model_folder(environment)}", f"--served-model-name={model_file.NAME}"]
    os.execve(sys.executable, [*server, *model, *CPU_FLAGS, *GATEWAY_FLAGS, *further], {**inherited, **variables})


if __name__ == "__main__":
    main()
