"""`manage.py ledger check [--all] [--json]`: whether the books agree; `ledger price-unpriced`: prices what had none;
`ledger rebuild-days`: sums the days anew."""

import sys
from typing import Any

import redis
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError
from django.utils import timezone

from billing import rebuilding
from billing.late_pricing import price_unpriced
from billing.ledger_check.due import due_months
from billing.ledger_check.registry import CHECKS
from billing.ledger_check.report import check
from tenants.models import Tenant


class Command(BaseCommand):
    help = "Works on the ledger as a whole."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        checking = verbs.add_parser(
            "check",
            help="compares records, hours, costs and what else is made of them; prints each difference",
            description="Compares the books with each other; changes nothing. Reads what the next nightly check would: "
            "this month, those that changed since they were read or differed, and one of the others in turn. "
            "Exit status: 0 clean, 1 differences, 2 they could not be compared.",
        )
        checking.add_argument("--all", action="store_true", help="read every month, however long ago")
        checking.add_argument("--json", action="store_true", help="one object: parameters, checks and verdict")
        checking.add_argument(
            "--only", action="append", choices=list(CHECKS), default=[], help="this check; may repeat"
        )
        pricing = verbs.add_parser(
            "price-unpriced",
            help="puts prices that are there by now on usage that came without one",
            description="Appends a correction for each kept record that has no price: at the price in force when it "
            "was admitted, else at the one in force now. Budgets are not charged. A second time changes nothing.",
        )
        pricing.add_argument("--tenant", help="of this tenant alone")
        pricing.add_argument("--dry-run", action="store_true", help="print what would be priced and append nothing")
        verbs.add_parser(
            "rebuild-days",
            help="sums the days of usage anew from its hours, where the check found that they differ",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        {"check": self._check, "price-unpriced": self._price, "rebuild-days": self._rebuild}[options["verb"]](options)

    def _check(self, options: dict[str, Any]) -> None:
        try:
            with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=30) as client:
                months = None if options["all"] else due_months(timezone.now())
                report = check(client, spool=settings.HOME / "spool", names=options["only"], months=months)
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

    def _price(self, options: dict[str, Any]) -> None:
        tenant, dry_run = options["tenant"], options["dry_run"]
        if tenant is not None and not Tenant.objects.filter(slug=tenant).exists():
            raise CommandError(f"there is no tenant {tenant}")
        try:
            with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=30) as client:
                done = price_unpriced(client, tenant=tenant, dry_run=dry_run)
        except redis.RedisError as error:
            raise CommandError(f"Redis does not answer, run it again: {error}") from error
        for version, count in sorted(done.priced.items()):
            self.stdout.write(f"{count:,} at {version}" + (", not appended" if dry_run else ""))
        for (slug, model, currency), count in sorted(done.left.items()):
            self.stdout.write(f"{count:,} of {slug} for {model}: there is no price in {currency}")
        if not done.priced and not done.left:
            self.stdout.write("nothing is unpriced")

    def _rebuild(self, options: dict[str, Any]) -> None:
        self.stdout.write(f"{rebuilding.days():,} days")
