"""Planning API keys."""

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.utils import timezone

from headrace.apply.budgets import Budgets
from headrace.apply.entries import Entry
from headrace.apply.model_limits import FIELD, ModelLimitsOf
from headrace.apply.plan import Minted, Plan
from headrace.apply.problems import near
from routing.models import Model
from tenants import keys
from tenants.issuing import draft_key
from tenants.models import ApiKey, Project

Projects = Mapping[str, Mapping[str, Project]]


def plan_keys(
    plan: Plan,
    entries: list[Entry],
    projects: Projects,
    models: Mapping[str, Model],
    budgets: Budgets,
    limits: ModelLimitsOf,
) -> None:
    """Plan the keys of the tenants `entries`. A key is found by project and name; `key-N` is the name of a nameless
    N-th one. The names of `models` a key may call must exist."""
    wanted = [(entry.name, child) for entry in entries for child in entry.children.get("keys", [])]
    found: dict[tuple[str, str, str], ApiKey] = {}
    for key in ApiKey.objects.filter(tenant__in=[entry.name for entry in entries]).select_related("project"):
        found[key.tenant_id, key.project.slug, key.name] = key
    secrets = _Secrets(child.get("secret") for _, child in wanted)
    seen: dict[tuple[str, str, str], int] = {}
    for tenant, child in wanted:
        name = child.name or f"key-{child.position + 1}"
        project = _project(plan, tenant, name, child, projects[tenant])
        identity = (tenant, project.slug if project else "", name)
        _check_models(plan, identity, child, models, found.get(identity))
        if project is None:
            continue
        if identity in seen:
            first = seen[identity]
            plan.problems.add(child.line, f"key {'/'.join(identity)} stands here twice (first in line {first})")
            continue
        seen[identity] = child.line
        planned = _plan_key(plan, child, project, name, found.get(identity), secrets)
        if planned is not None:
            budgets.plan(plan, tenant, child, key=planned.public_id)
            limits.plan(plan, tenant, child, key=planned.public_id)


class _Secrets:
    """Whose each chosen secret is, so that two keys never share one."""

    def __init__(self, texts: Any) -> None:
        digests = [keys.digest(text) for text in texts if text is not None]
        self._owners = {bytes(key.digest): key.public_id for key in ApiKey.objects.filter(digest__in=digests)}

    def claim(self, digest: bytes, public_id: str) -> bool:
        return self._owners.setdefault(digest, public_id) == public_id


def _plan_key(
    plan: Plan, entry: Entry, project: Project, name: str, key: ApiKey | None, secrets: _Secrets
) -> ApiKey | None:
    """Plan one key; it as it will be, None if it will not."""
    label = f"key {project.tenant_id}/{project.slug}/{name}"
    fields = {field: given.value for field, given in entry.given.items()}
    for column in ("project", "secret", "revoked", FIELD):
        fields.pop(column, None)
    revoked, secret = entry.get("revoked"), entry.get("secret")
    if key is None:
        if revoked:
            return None  # a key that does not exist opens nothing
        try:
            key, text = draft_key(project=project, name=name, secret=secret)
        except ValidationError as error:
            plan.problems.add(entry.line_of("secret"), f"{label}: {error.message}")
            return None
        if secret is None:
            plan.minted.append(Minted(label, text))
    else:
        if revoked is False and key.is_revoked:
            plan.problems.add(entry.line_of("revoked"), f"{label} was revoked and stays so; give a new key a new name")
        if revoked and not key.is_revoked:
            fields["revoked_at"] = timezone.now()
        if secret is not None:
            fields |= _replaced(plan, entry, label, key, secret)
    if secret is not None and not secrets.claim(keys.digest(secret), key.public_id):
        plan.problems.add(entry.line_of("secret"), f"{label}: another key has this secret")
    plan.put(key, entry, label, fields)
    return key


def _replaced(plan: Plan, entry: Entry, label: str, key: ApiKey, secret: str) -> dict[str, Any]:
    """The columns that change where the document gives another secret than the stored one."""
    if bytes(key.digest) in keys.digests(secret):
        return {}
    try:
        adopted = keys.adopt(secret)
    except ValidationError as error:
        plan.problems.add(entry.line_of("secret"), f"{label}: {error.message}")
        return {}
    return {"digest": adopted.digest, "hint": adopted.hint}


def _project(plan: Plan, tenant: str, name: str, entry: Entry, projects: Mapping[str, Project]) -> Project | None:
    wanted, label = entry.get("project"), f"key {tenant}/{name}"
    if wanted in projects:
        return projects[wanted]
    if wanted is not None:
        hint = near(wanted, projects)
        plan.problems.add(entry.line_of("project"), f'{label}: tenant {tenant} has no project "{wanted}"{hint}')
    elif len(projects) == 1:
        return next(iter(projects.values()))
    else:
        plan.problems.add(entry.line, f"{label} wants a project{near('', projects)}")
    return None


def _check_models(
    plan: Plan, identity: tuple[str, str, str], entry: Entry, models: Mapping[str, Model], key: ApiKey | None
) -> None:
    """Each model exists, or stands on the key already: a model deleted since does not make an export unusable."""
    for model in entry.get("models", []):
        if model not in models and not (key and model in key.models):
            tenant, _, name = identity
            line = entry.line_of("models")
            plan.problems.add(line, f'key {tenant}/{name}: there is no model "{model}"{near(model, models)}')
