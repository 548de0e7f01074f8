"""`manage.py quotas`: how many budgets, keys and the like a tenant may have, and exceptions for one."""

import getpass
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from headrace_core import audit
from tenants import quotas
from tenants.models import Quota, Tenant


class Command(BaseCommand):
    help = "Show what a tenant may have at most, or let one have more or fewer than all others."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tenant", nargs="?", help="its slug; without one, what holds for every tenant")
        parser.add_argument("figures", nargs="*", metavar="NAME=N", help="N empty: as all others")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = options["tenant"] or ""
        if tenant and not Tenant.objects.filter(pk=tenant).exists():
            raise CommandError(f'There is no tenant "{tenant}".')
        changes = [_figure(text) for text in options["figures"]]
        with audit.acting(who=getpass.getuser(), origin="manage.py quotas"):
            for name, most in changes:
                quotas.set_quota(name, most, tenant=tenant)
        own = set(Quota.objects.filter(tenant=tenant).exclude(tenant="").values_list("name", flat=True))
        for name in quotas.DEFAULTS:
            mark = "  its own" if name in own else ""
            self.stdout.write(f"{name:20} {quotas.most_of(name, tenant):>8,}{mark}")


def _figure(text: str) -> tuple[str, int | None]:
    name, _, most = text.partition("=")
    if name not in quotas.DEFAULTS or not (most.isdecimal() or not most):
        raise CommandError(f"{text} is not NAME=N with one of {', '.join(quotas.DEFAULTS)}.")
    return name, int(most) if most else None
