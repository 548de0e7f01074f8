"""`manage.py migrate`: Django's own, after the database and its roles exist, and as the role that owns the tables."""

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import DEFAULT_DB_ALIAS

from headrace import database, env


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
        super().handle(*args, **options)
