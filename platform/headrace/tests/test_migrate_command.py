"""`manage.py migrate` on several machines at once, and with code that is older than the database."""

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connections
from psycopg import sql

from headrace_core import database
from headrace_dev.testing.web import ROOT


@pytest.fixture
def fresh() -> Iterator[str]:
    """The address of a database that is not there yet."""
    name = f"fresh_{secrets.token_hex(4)}"
    yield urlunsplit(urlsplit(settings.DATABASE_URL)._replace(path=f"/{name}"))
    with database.connect_beside(settings.DATABASE_URL) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def test_of_several_at_once_one_migrates_and_the_others_wait(fresh: str) -> None:
    environment = {**os.environ, "DATABASE_URL": fresh, "PYTHONUNBUFFERED": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "migrate", "--no-input"],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    said = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], said
    assert sum("Applying billing.0001_initial" in text for text in said) == 1
    assert sum("No migrations to apply" in text for text in said) == 2
    with psycopg.connect(fresh) as connection:
        [(twice,)] = connection.execute(
            "SELECT count(*) FROM (SELECT FROM django_migrations GROUP BY app, name HAVING count(*) > 1) AS twice"
        ).fetchall()
    assert twice == 0


@pytest.mark.django_db(databases=["default", "owner"], transaction=True)
def test_code_that_is_older_than_the_database_is_refused() -> None:
    with connections["owner"].cursor() as cursor:
        cursor.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('billing', '9999_newer', now())")
        try:
            with pytest.raises(CommandError, match=r"newer than this code: it has billing\.9999_newer"):
                call_command("migrate", verbosity=0)
        finally:
            cursor.execute("DELETE FROM django_migrations WHERE name = '9999_newer'")
    call_command("migrate", verbosity=0)


@pytest.mark.django_db(databases=["default", "owner"], transaction=True)
def test_what_an_app_that_is_gone_had_applied_is_no_newer_code() -> None:
    with connections["owner"].cursor() as cursor:
        cursor.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('removed', '0001_initial', now())")
        try:
            call_command("migrate", verbosity=0)
        finally:
            cursor.execute("DELETE FROM django_migrations WHERE app = 'removed'")
