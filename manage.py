#!/usr/bin/env python
"""The command line of Headrace. `manage.py help` lists the commands; every one takes `--home DIR`."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent


def take_home(argv: list[str]) -> list[str]:
    """Move `--home DIR` from the arguments to HEADRACE_HOME: settings need it before any command is parsed."""
    rest, arguments = [], iter(argv)
    for argument in arguments:
        if argument == "--home":
            directory = next(arguments, "")
            if not directory:
                sys.exit("--home needs a directory")
            os.environ["HEADRACE_HOME"] = directory
        elif argument.startswith("--home="):
            os.environ["HEADRACE_HOME"] = argument.removeprefix("--home=")
        else:
            rest.append(argument)
    return rest


if __name__ == "__main__":
    # `platform/` is a source folder, never a package: a package of that name would shadow the standard library's.
    sys.path.insert(0, str(ROOT / "platform"))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "headrace.settings")
    from django.core.management import execute_from_command_line

    from headrace import command_line

    command_line.run(execute_from_command_line, take_home(sys.argv))
