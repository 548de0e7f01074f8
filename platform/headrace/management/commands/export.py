"""`manage.py export`: the configuration as a document that `apply` takes."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from headrace.apply import export_document
from tenants.models import Tenant


class Command(BaseCommand):
    help = (
        "Writes the configuration as YAML for `apply`, without secrets. Applied here it changes nothing; applied to an "
        "empty installation it mints new keys, and providers' secrets have to be given again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", help="only this tenant's part")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["tenant"] and not Tenant.objects.filter(slug=options["tenant"]).exists():
            raise CommandError(f"there is no tenant {options['tenant']}")
        self.stdout.write(export_document(tenant=options["tenant"]), ending="")
