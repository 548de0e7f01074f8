"""The cast of the tests: acme with a project and a key, globex beside it."""

from typing import Any

from django.db import connection

from tenants import keys
from tenants.api_keys import issue_key
from tenants.models import ApiKey, Project, Tenant
from tenants.projects import add_project


def make_tenant(slug: str = "acme", **fields: Any) -> Tenant:
    return Tenant.objects.create(**{"slug": slug, "name": slug.title()} | fields)


def make_project(tenant: Tenant, slug: str = "web", **fields: Any) -> Project:
    values: dict[str, Any] = {"name": slug.title()} | fields
    return add_project(tenant=tenant, slug=slug, **values)


def make_key(project: Project, name: str = "ci", *, secret: str | None = None, **terms: Any) -> ApiKey:
    return issue_key(project=project, name=name, minted=keys.adopt(secret) if secret else None, **terms).key


def sql(statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters or None)
        return cursor.fetchall() if cursor.description else []
