"""`manage.py holds`: what running requests hold of their meters. Empty at rest."""

import json
from datetime import UTC, datetime
from typing import Any

import redis
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from headrace_core import store_keys
from tenants.meters import aside, holds


class Command(BaseCommand):
    help = "List the holds of running requests: request, tenant, what is held of which meter, when the lease ends."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--format", choices=("table", "json"), default="table")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=5) as client:
                living = sorted(holds.living(client), key=lambda hold: str(hold["request_id"]))
                set_aside = aside.read(client)
        except redis.RedisError as error:
            raise CommandError(f"Redis does not answer: {error}") from error
        for hold in living:
            found = set_aside.get(str(hold["request_id"]))
            hold["aside"] = found.why if found else None
            hold["expires_at"] = datetime.fromtimestamp(int(str(hold["expires_at"])) / 1000, UTC).isoformat()
        if options["format"] == "json":
            self.stdout.write(json.dumps(living, indent=2))
        else:
            self._table(living)

    def _table(self, living: list[dict[str, Any]]) -> None:
        if not living:
            self.stdout.write("No holds: nothing is running.")
            return
        self.stdout.write(f"{'REQUEST':36}  {'TENANT':20}  {'LEASE ENDS':25}  HELD")
        for hold in living:
            held = ", ".join(
                f"{meter['held']} {meter['key'].removeprefix(store_keys.METER)}" for meter in hold["meters"]
            )
            lease = hold["expires_at"][:23]
            self.stdout.write(f"{hold['request_id']}  {hold['tenant']:20}  {lease:25}  {held or '-'}")
            if hold["aside"]:
                self.stdout.write(f"{'':36}  set aside, no reaper here can settle it: {hold['aside']}")
