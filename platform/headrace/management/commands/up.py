"""`manage.py up`: Headrace and everything it needs, on this machine, in the foreground."""

import os
from argparse import ArgumentTypeError
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from headrace.stack import up
from headrace.stack.errors import StackError
from headrace.stack.parts.web import SERVERS
from headrace_core import env


class Command(BaseCommand):
    help = (
        "Starts PostgreSQL, Valkey, an engine, web, worker, beat and collector, with a demo tenant; Ctrl-C stops them "
        "all."
    )
    requires_system_checks = []  # its children check; here there is no database yet

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=_port, default=settings.PORT, help="where the web listens (HEADRACE_PORT)")
        # manage.py has taken it from the arguments by then; here it is for --help.
        parser.add_argument("--home", default=settings.HOME, metavar="DIR", help="all local state (HEADRACE_HOME)")
        parser.add_argument("--engine", choices=up.ENGINES, default="llamacpp", help="what answers the demo's requests")

    def handle(self, *args: Any, **options: Any) -> None:
        up.in_this_tree(settings.ROOT)
        wanted = up.Options(
            root=settings.ROOT,
            home=settings.HOME,
            port=options["port"],
            engine=options["engine"],
            server=env.choice("HEADRACE_SERVER", SERVERS[0], SERVERS),
            drain_seconds=settings.DRAIN_SECONDS,
            # Not by env.text: it would find the addresses of an earlier run.
            database_url=os.environ.get("DATABASE_URL") or None,
            redis_url=os.environ.get("REDIS_URL") or None,
        )
        try:
            up.Up(wanted, up.say).run()
        except StackError as error:
            raise CommandError(str(error)) from error


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= env.LAST_PORT:
        raise ArgumentTypeError(f"{text} is no port: 1 to {env.LAST_PORT}")
    return int(text)
