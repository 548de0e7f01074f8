"""The web process of `manage.py up` and of the image."""

import argparse
import os
import resource
import sys

from headrace_core import env, log_writer, secret_key

# How long a thread keeps the interpreter from the others, in seconds. Python's own 5 ms come again at each system call
# of the event loop while another thread (a screen, a scrape) is at work: tens of milliseconds for every stream.
_SWITCH_SECONDS = 0.0005


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m headrace.server", description="Serve Headrace over HTTP.")
    parser.add_argument("--server", choices=("uvicorn", "daphne"), default=env.text("HEADRACE_SERVER", "uvicorn"))
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=env.integer("HEADRACE_PORT", 8080))
    options = parser.parse_args()
    if not secret_key.read(env.home()):
        sys.exit(f"error: {secret_key.missing(env.home())}")
    log_writer.queue_standard_streams()
    sys.setswitchinterval(_SWITCH_SECONDS)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "headrace.settings")
    # A stream takes two descriptors, and shells start us with 1024.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if options.server == "uvicorn":
        from headrace.server.uvicorn import serve  # noqa: PLC0415  (Daphne installs its reactor when imported)
    else:
        from headrace.server.daphne import serve  # noqa: PLC0415
    sys.exit(serve(options.host, options.port))


if __name__ == "__main__":
    main()
