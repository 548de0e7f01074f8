"""Planning pools, replicas and providers."""

from django.db import models

from engines.models import Pool, Provider, Replica
from headrace.apply.entries import Entry
from headrace.apply.plan import Plan
from headrace_core import sealing


def plan_pools(plan: Plan, entries: list[Entry]) -> dict[str, Pool]:
    """Plan `entries`; all pools by name, as they will be."""
    pools = {pool.name: pool for pool in Pool.objects.all()}
    replicas = list(Replica.objects.all())
    lines: dict[int, int] = {}
    for entry in entries:
        pool = pools.setdefault(entry.name, Pool(name=entry.name))
        if pool._state.adding and "model" not in entry.given:
            plan.problems.add(entry.line, f"pool {entry.name} wants a model: the name under which its engine serves it")
            continue
        _put_with_secrets(plan, pool, entry, f"pool {entry.name}", ("api_key", "admin_key"))
        for child in entry.children.get("replicas", []):
            replica = _plan_replica(plan, pool, child, replicas)
            if id(replica) in lines:
                first = lines[id(replica)]
                plan.problems.add(child.line, f"replica {replica} stands here twice (first in line {first})")
            lines[id(replica)] = child.line_of("url")
    _check_addresses(plan, replicas, lines)
    return pools


def plan_providers(plan: Plan, entries: list[Entry]) -> dict[str, Provider]:
    """Plan `entries`; all providers by name, as they will be."""
    providers = {provider.name: provider for provider in Provider.objects.all()}
    for entry in entries:
        provider = providers.setdefault(entry.name, Provider(name=entry.name))
        if provider._state.adding and "base_url" not in entry.given:
            plan.problems.add(entry.line, f"provider {entry.name} wants a base_url")
            continue
        _put_with_secrets(plan, provider, entry, f"provider {entry.name}", ("api_key",))
    return providers


def _put_with_secrets(plan: Plan, row: models.Model, entry: Entry, label: str, names: tuple[str, ...]) -> None:
    """As Plan.put, but secrets are compared as text and stored sealed: sealing one twice gives two values."""
    wanted = {name: given.value for name, given in entry.given.items() if name not in names}
    for name in names:
        text = entry.get(name)
        if name in entry.given and (text and text.strip()) != _opened(getattr(row, name)):
            wanted[name] = None if text is None else sealing.seal(text)
    plan.put(row, entry, label, wanted)


def _opened(sealed: bytes | None) -> str | None:
    """The stored text; of one that none of our keys opens any more, a text that no document can hold."""
    if sealed is None:
        return None
    try:
        return sealing.open(sealed)
    except sealing.Unreadable:
        return ""


def _plan_replica(plan: Plan, pool: Pool, entry: Entry, replicas: list[Replica]) -> Replica:
    """A replica is found by its name, a nameless one by its address. A new one joins `replicas`, all there will be."""
    ours = [replica for replica in replicas if replica.pool_id == pool.name]
    url = entry.get("url")
    found = [replica for replica in ours if (replica.name == entry.name if entry.name else replica.url == url)]
    name = entry.name or (found[0].name if found else _free_name({replica.name for replica in ours}))
    label = f"replica {pool.name}/{name}"
    replica = found[0] if found else Replica(pool=pool, name=name)
    if not found:
        replicas.append(replica)
    if replica._state.adding and not url:
        plan.problems.add(entry.line, f"{label} wants a url")
    else:
        plan.put(replica, entry, label, {field: given.value for field, given in entry.given.items()})
    return replica


def _check_addresses(plan: Plan, replicas: list[Replica], lines: dict[int, int]) -> None:
    """No two replicas share an address. Judged at the end: a document may exchange two."""
    owners: dict[str, Replica] = {}
    for replica in sorted(replicas, key=lambda replica: id(replica) in lines):
        owner = owners.setdefault(replica.url, replica)
        if owner is not replica and id(replica) in lines and replica.url:
            plan.problems.add(lines[id(replica)], f"replica {replica}: {replica.url} is the address of {owner} already")


def _free_name(taken: set[str]) -> str:
    number = 1
    while f"replica-{number}" in taken:
        number += 1
    return f"replica-{number}"
