"""The boundary of `manage.py`: what an operator can put right is said in a line; the rest keeps its traceback."""

import getpass
import os
import sys
from collections.abc import Callable

import psycopg
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError

from headrace_core import database, env, secret_key


def run(execute: Callable[[list[str]], None], argv: list[str]) -> None:
    """Run the command of `argv`; `--traceback` shows everything."""
    try:
        execute(argv)
    except (env.BadSetting, ImproperlyConfigured, OperationalError, psycopg.OperationalError) as error:
        text = explain(error)
        if text is None or "--traceback" in argv:
            raise
        sys.exit(f"error: {text}")


def operators_name() -> str:
    """Who runs the command, for the audit trail."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return f"user {os.getuid()}"


def explain(error: Exception) -> str | None:
    """The line for the operator, without a password; None for an error that is none of theirs."""
    if isinstance(error, env.BadSetting):
        return str(error)
    if isinstance(error, ImproperlyConfigured):  # how Django takes an empty SECRET_KEY
        return None if secret_key.read(env.home()) else secret_key.missing(env.home())
    cause = error.__cause__ or error
    if getattr(cause, "sqlstate", None):
        return None  # a statement failed: the database does answer
    from django.conf import settings  # noqa: PLC0415  (it may be what failed above)

    default = settings.DATABASES["default"]
    place = f"{default['HOST']}:{default['PORT'] or 5432}"
    return (
        f"the database at {place} does not answer ({database.reason(cause)}): no `manage.py up` runs under "
        f"{env.home()}, or DATABASE_URL points elsewhere"
    )
