"""`manage.py migrate`: Django's own, after the database and its roles exist, and as the role that owns the tables.

One process migrates at a time, on whatever machine: another waits, and finds nothing left to do. Code that is older
than the database is refused: it would say that there is nothing to do, and then work on tables that it does not know.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.loader import MigrationLoader

from headrace_core import database, env
from tenants import quotas

_LOCK = 0x6D696772  # "migr"


class Command(migrate.Command):
    help = "Creates the database and its roles where they are missing, and brings the tables up to date."

    def execute(self, *args: Any, **options: Any) -> str | None:
        # Before Django's checks of the models, which ask the database what it can do.
        try:
            database.prepare(env.text("DATABASE_OWNER_URL", settings.DATABASE_URL))
        except database.CannotPrepare as error:
            raise CommandError(str(error)) from error
        return super().execute(*args, **options)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["database"] == DEFAULT_DB_ALIAS:
            options["database"] = "owner"
        with self._alone(options["database"]):
            self._refuse_newer(options["database"])
            super().handle(*args, **options)
            if options["app_label"] is None and not options["plan"] and not options["check_unapplied"]:
                quotas.write_defaults(settings.QUOTAS)

    @contextlib.contextmanager
    def _alone(self, alias: str) -> Iterator[None]:
        """Hold the lock of all who migrate, on a connection of its own: some migrations end their transaction."""
        with contextlib.closing(connections[alias].copy()) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK])
            if cursor.fetchone() != (True,):
                self.stdout.write("Another process migrates this database; waiting for it.")
                cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
            yield

    def _refuse_newer(self, alias: str) -> None:
        """Raise CommandError where migrations of our apps were applied that this code does not have."""
        loader = MigrationLoader(connections[alias], ignore_no_migrations=True)
        replaced = {name for one in loader.disk_migrations.values() for name in one.replaces}
        unknown = sorted(set(loader.applied_migrations) - set(loader.disk_migrations) - replaced)
        newer = [f"{app}.{name}" for app, name in unknown if app in loader.migrated_apps]
        if newer:
            raise CommandError(
                f"The database is newer than this code: it has {', '.join(newer)}, of which this code knows nothing. "
                "Nothing was changed. Run the version that made it, or a later one; to go back to this one, restore a "
                "backup from before, or have that version undo it first (manage.py migrate APP MIGRATION)."
            )
