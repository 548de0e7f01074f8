"""Migrations are whole: each app has one last one, and together they make what the models say."""

from django.apps import apps
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState


def test_each_app_has_one_last_migration() -> None:
    assert MigrationLoader(None).detect_conflicts() == {}


def test_the_models_say_nothing_that_no_migration_makes() -> None:
    loader = MigrationLoader(None)
    detector = MigrationAutodetector(loader.project_state(), ProjectState.from_apps(apps))
    missing = detector.changes(graph=loader.graph)
    assert {app: [migration.operations for migration in migrations] for app, migrations in missing.items()} == {}
