"""Migrations are whole: each app has one last one, and together they make what the models say."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.db.migrations.loader import MigrationLoader


def test_each_app_has_one_last_migration() -> None:
    loader = MigrationLoader(None)
    assert loader.detect_conflicts() == {}


@pytest.mark.django_db(databases=["default", "owner", "app"])
def test_the_models_say_nothing_that_no_migration_makes() -> None:
    out = StringIO()
    call_command("makemigrations", check=True, dry_run=True, stdout=out)
    assert out.getvalue() == "No changes detected\n"
