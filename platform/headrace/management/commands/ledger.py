"""`manage.py ledger check [--json]`: whether the books agree with each other."""

import sys
from typing import Any

import redis
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError

from billing.ledger_check.registry import CHECKS
from billing.ledger_check.report import check


class Command(BaseCommand):
    help = "Works on the ledger as a whole."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        checking = verbs.add_parser(
            "check",
            help="compares records, hours, costs and what else is made of them; prints each difference",
            description="Compares the books with each other; changes nothing. Exit status: 0 clean, 1 differences, "
            "2 they could not be compared.",
        )
        checking.add_argument("--json", action="store_true", help="one object: parameters, checks and verdict")
        checking.add_argument(
            "--only", action="append", choices=list(CHECKS), default=[], help="this check; may repeat"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=30) as client:
                report = check(client, spool=settings.HOME / "spool", names=options["only"])
        except (redis.RedisError, OperationalError) as error:
            raise CommandError(f"the books could not be compared: {str(error).strip()}", returncode=2) from error
        if options["json"]:
            self.stdout.write(report.as_json())
        else:
            for line in report.as_lines():
                self.stdout.write(line)
        if not report.is_clean:
            self.stdout.flush()
            sys.exit(1)
