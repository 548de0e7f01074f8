"""Planning API keys."""

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from headrace.apply.budgets import Budgets
from headrace.apply.entries import Entry
from headrace.apply.model_limits import FIELD, ModelLimitsOf
from headrace.apply.plan import Minted, Plan
from headrace.apply.problems import near
from headrace_core.writes import InvalidWrite
from routing.models import Model
from tenants import keys
from tenants.api_keys import CHANGES, change_key, draft_key, issue_key, revoke_key
from tenants.keys import MintedKey
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
    minted: MintedKey | None
    is_new = key is None
    if key is None:
        if revoked:
            return None  # a key that does not exist opens nothing
        minted = keys.mint() if secret is None else _adopted(plan, entry, label, secret)
        if minted is None:
            return None
        key = draft_key(project=project, name=name, minted=minted)
        if secret is None:
            plan.minted.append(Minted(label, minted.text))
    else:
        if revoked is False and key.is_revoked:
            plan.problems.add(entry.line_of("revoked"), f"{label} was revoked and stays so; give a new key a new name")
        if revoked and not key.is_revoked:
            fields["revoked_at"] = timezone.now()
        is_other = secret is not None and bytes(key.digest) not in keys.digests(secret)
        minted = _adopted(plan, entry, label, secret) if is_other else None
        if minted is not None:
            fields |= {"digest": minted.digest, "hint": minted.hint}
    if secret is not None and not secrets.claim(keys.digest(secret), key.public_id):
        plan.problems.add(entry.line_of("secret"), f"{label}: another key has this secret")
    if (change := plan.put(key, entry, label, fields)) is None:
        return key
    if is_new:
        change.call(issue_key, project=project, name=name, minted=minted, **fields)
        return key
    changes = {name: fields[name] for name in change.fields & CHANGES}
    if changes or minted:
        change.call(change_key, key=key, minted=minted, **changes)
    if "revoked_at" in change.fields:
        change.call(revoke_key, key=key)
    return key


def _adopted(plan: Plan, entry: Entry, label: str, secret: str) -> MintedKey | None:
    """The operator's own secret; None, and a problem, for one that cannot be used."""
    try:
        return keys.adopt(secret)
    except InvalidWrite as invalid:
        plan.problems.add(entry.line_of("secret"), f"{label}: {invalid}")
        return None


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
