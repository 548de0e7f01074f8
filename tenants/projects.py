"""Add, change and remove projects. Every process obeys within a second (the configuration feed)."""

from decimal import Decimal
from typing import Unpack

from headrace_core.writes import check_names, check_row, transactional
from tenants.limits import LimitValues
from tenants.models import Project, Tenant


class ProjectTerms(LimitValues, total=False):
    """weight: the share of what the tenant gets of busy replicas, against its other projects."""

    weight: Decimal


class ProjectChanges(ProjectTerms, total=False):
    """What may change of a project. Its slug never does: records and budgets refer to it."""

    name: str


TERMS, CHANGES = frozenset(ProjectTerms.__annotations__), frozenset(ProjectChanges.__annotations__)


def draft_project(*, tenant: Tenant, slug: str, name: str, **terms: Unpack[ProjectTerms]) -> Project:
    """Build the row that `add_project` saves, unsaved: for plans, and for rows that are written in bulk."""
    check_names(terms, TERMS)
    return Project(tenant=tenant, slug=slug, name=name, **terms)


@transactional(Project)
def add_project(*, tenant: Tenant, slug: str, name: str, **terms: Unpack[ProjectTerms]) -> Project:
    """Add a project to the tenant.

    Raises InvalidWrite. The database refuses a slug that the tenant's projects have already, and one project too many.
    """
    project = draft_project(tenant=tenant, slug=slug, name=name, **terms)
    check_row(project)
    project.save(force_insert=True)
    return project


@transactional(Project)
def change_project(*, project: Project, **changes: Unpack[ProjectChanges]) -> None:
    """Change the project's name, weight and limits, and no other column. Raises InvalidWrite."""
    check_names(changes, CHANGES)
    for name, value in changes.items():
        setattr(project, name, value)
    check_row(project, changes)
    project.save(update_fields=list(changes))


@transactional(Project)
def remove_project(*, project: Project) -> None:
    """Remove a project that never had a key; raises django's ProtectedError for any other."""
    project.delete()
