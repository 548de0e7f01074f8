"""llama.cpp serving the demo model: `python -m engines.launch.llamacpp --port N`. Ends on SIGTERM or SIGINT.

The server runs in threads of this process, listens on 127.0.0.1 and is ready about a second after the start.
"""

import argparse
import ctypes
import os
import signal
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from engines.launch import model_file

SLOTS = 8
CONTEXT_PER_SLOT = 2048  # tokens of one request, prompt and answer together


class CannotRun(Exception):
    """The engine does not run on this machine; the text says what is missing."""


def check() -> None:
    """Raise CannotRun where llama.cpp would fail to load, in words rather than the loader's."""
    try:
        ctypes.CDLL("libgomp.so.1")
    except OSError as error:
        raise CannotRun(
            "llama.cpp needs the system library libgomp.so.1, which this machine lacks: install it (the package is "
            "called libgomp1 on Debian and Ubuntu, libgomp on Fedora and Alpine) or start without it: --engine none"
        ) from error
    if find_spec("xllamacpp") is None:
        raise CannotRun("the package xllamacpp is missing: run `make install`")


def parameters(port: int, *, threads: int | None = None) -> Any:
    """llama.cpp's parameters for the demo model."""
    params = import_module("xllamacpp").CommonParams()
    params.model.path = str(model_file.path())
    params.model_alias = {model_file.NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.ui = False
    params.n_parallel = SLOTS
    params.n_ctx = SLOTS * CONTEXT_PER_SLOT
    # A context of its own for each slot: with one shared pool, a full pool fails every running request.
    params.kv_unified = False
    params.cont_batching = True
    params.cache_prompt = True
    params.cache_ram_mib = 256
    params.endpoint_metrics = True
    params.endpoint_slots = True
    # One core stays free: with all of them taken and anything else running, the threads wait for one another.
    cores = threads or max(1, len(os.sched_getaffinity(0)) - 1)
    params.cpuparams.n_threads = cores
    params.cpuparams_batch.n_threads = cores
    return params


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="engines.launch.llamacpp", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--threads", type=int, help="default: the machine's cores, less one")
    options = parser.parse_args(arguments)
    try:
        check()
        params = parameters(options.port, threads=options.threads)
    except (CannotRun, model_file.ModelMissing) as error:
        sys.exit(str(error))
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # both end it at once: there is nothing to save
    server = import_module("xllamacpp").Server(params)
    print(f"llama.cpp serves {model_file.NAME} at {server.listening_address}", flush=True)
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
