"""The keys, as the data plane looks them up: digest -> principal, with every meter above it ready to take.

Rows come as tuples in the order of the SELECTs below; loading is whoever has a connection's business.
What has ended for good, revoked keys and secrets that were rotated away, is in none of them: however much of it there
is, it takes no memory.
"""

import sys
import time
from collections.abc import Iterable
from typing import Any

import msgspec

from tenants.meters.meter import Meter, meters_of
from tenants.models.limits import LIMIT_FIELDS

_limits = ", ".join(LIMIT_FIELDS)
# table -> the SELECT that loads it, and what `AND` makes of it the part with these primary keys (%s, their texts),
# through its index.
SELECTS = {
    "tenants_tenant": (
        f"SELECT slug, currency, time_zone, weight, cached_input_weight, suspended_at, {_limits} FROM tenants_tenant"
        " WHERE true",
        "slug = ANY(%s::text[])",
    ),
    "tenants_project": (
        f"SELECT id, slug, {_limits}, weight FROM tenants_project WHERE true",
        "id = ANY(%s::text[]::bigint[])",
    ),
    "tenants_apikey": (
        f"SELECT public_id, digest, tenant_id, project_id, models, priority, expires_at, {_limits}"
        " FROM tenants_apikey WHERE revoked_at IS NULL",
        "public_id = ANY(%s::text[])",
    ),
    "tenants_retiredsecret": (
        "SELECT r.id, r.digest, r.key_id, r.until FROM tenants_retiredsecret AS r"
        " JOIN tenants_apikey AS k ON k.public_id = r.key_id WHERE r.until > now() AND k.revoked_at IS NULL",
        "r.id = ANY(%s::text[]::bigint[])",
    ),
    "tenants_modellimits": (
        f"SELECT id, tenant_id, project, key, model, {_limits} FROM tenants_modellimits WHERE true",
        "id = ANY(%s::text[]::bigint[])",
    ),
}
_NO_LIMITS = (None,) * len(LIMIT_FIELDS)


class Principal(msgspec.Struct):
    """Who calls: a key, its project and tenant, and the limits above it.

    weight: the tenant's share of busy replicas; project_weight: the project's of that. models: the public names it may
    call, None = all. meters: key's, project's, tenant's. The largest prompt and output are the tightest of the three,
    None = unlimited. cached_input_weight: what a cached input token counts in tokens a minute. by_model: the principal
    as it is for the models that have limits of their own.
    """

    tenant: str
    currency: str
    time_zone: str
    weight: float
    project: str
    key: str
    models: frozenset[str] | None
    priority: str
    meters: list[Meter]
    max_prompt_tokens: int | None
    max_output_tokens: int | None
    expires_at: float | None
    usable: bool
    cached_input_weight: float = 1
    project_weight: float = 1.0
    project_id: str = ""
    by_model: dict[str, "Principal"] = {}

    def for_model(self, model: str) -> "Principal":
        """Itself, with what limits it for that model beside what limits it for all."""
        return self.by_model.get(model, self)

    def may_call(self, model: str) -> bool:
        return self.models is None or model in self.models

    def is_valid(self) -> bool:
        return self.usable and (self.expires_at is None or time.time() < self.expires_at)


class Keyring:
    """All keys of all tenants that are not revoked. `find` is one dict look-up; changes come in row by row.

    Principals are made on first use, and dropped when anything above them changes: a key's own, those of a project, or
    of a tenant. Whatever another tenant does, however many rows it has, costs a tenant nothing.
    """

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, tuple[Any, ...]]] = {table: {} for table in SELECTS}
        self._by_digest: dict[bytes, str] = {}
        self._retired: dict[bytes, tuple[str, float]] = {}  # digest -> key, and until when it is good
        self._retired_of: dict[str, set[str]] = {}  # key -> ids of such secrets
        self._principals: dict[str, Principal] = {}
        # The keys of principals that are made, by tenant and by project id; limits' ids by tenant, project and key.
        self._made_of_tenant: dict[str, set[str]] = {}
        self._made_of_project: dict[str, set[str]] = {}
        self._limits_of: dict[tuple[str, str, str], dict[str, None]] = {}

    def load(self, table: str, rows: Iterable[tuple[Any, ...]], gone: Iterable[str] = ()) -> None:
        """Take over `rows` of `table`; the primary keys `gone` exist no more."""
        known, fresh = self._rows[table], {str(row[0]): row for row in rows}
        # All old ones first: a digest may move from one key to another.
        old = {ref: row for ref in (*gone, *fresh) if (row := known.pop(ref, None))}
        known.update(fresh)
        match table:
            case "tenants_apikey":
                self._drop(old)
                for row in old.values():
                    self._by_digest.pop(row[1], None)
                for ref, row in fresh.items():
                    known[ref] = compact = _compact(row)
                    self._by_digest[compact[1]] = ref
                for ref in old.keys() - fresh.keys():
                    for secret in self._retired_of.pop(ref, ()):
                        self._retired.pop(bytes(self._rows["tenants_retiredsecret"].pop(secret)[1]), None)
            case "tenants_retiredsecret":
                for ref, (_, digest, key, _) in old.items():
                    self._retired.pop(bytes(digest), None)
                    _discard(self._retired_of, key, ref)
                for ref, (_, digest, key, until) in fresh.items():
                    self._retired[bytes(digest)] = key, until.timestamp()
                    self._retired_of.setdefault(key, set()).add(ref)
            case "tenants_modellimits":
                for ref, row in old.items():
                    scope = row[1:4]
                    self._limits_of[scope].pop(ref, None)
                    if not self._limits_of[scope]:
                        del self._limits_of[scope]
                for ref, row in fresh.items():
                    self._limits_of.setdefault(row[1:4], {})[ref] = None
                for _, tenant, _, key, *_ in (*old.values(), *fresh.values()):
                    self._drop({key} if key else self._made_of_tenant.get(tenant, ()))
            case "tenants_project" | "tenants_tenant":
                made = self._made_of_tenant if table == "tenants_tenant" else self._made_of_project
                for ref in {*old, *fresh}:
                    self._drop(made.get(ref, ()))

    def _drop(self, refs: Iterable[str]) -> None:
        """The principals of these keys are made anew when next they call."""
        for ref in list(refs):
            if (principal := self._principals.pop(ref, None)) is not None:
                _discard(self._made_of_tenant, principal.tenant, ref)
                _discard(self._made_of_project, principal.project_id, ref)

    def find(self, digest: bytes) -> Principal | None:
        """The principal of a key's digest, usable or not; None if no key has it."""
        ref = self._by_digest.get(digest)
        return self._find_retired(digest) if ref is None else self._principal(ref)

    def _find_retired(self, digest: bytes) -> Principal | None:
        """A key by a secret it had before: the same principal, until that secret's time is over."""
        ref, until = self._retired.get(digest, ("", 0.0))
        if ref not in self._rows["tenants_apikey"]:
            return None
        principal = self._principal(ref)
        return msgspec.structs.replace(principal, expires_at=min(until, principal.expires_at or until))

    def _principal(self, ref: str) -> Principal:
        principal = self._principals.get(ref)
        if principal is None:
            principal = self._principals[ref] = self._make(ref)
            self._made_of_tenant.setdefault(principal.tenant, set()).add(ref)
            self._made_of_project.setdefault(principal.project_id, set()).add(ref)
        return principal

    def __len__(self) -> int:
        return len(self._by_digest)

    def _make(self, ref: str) -> Principal:
        key = self._rows["tenants_apikey"][ref]
        public_id, _, tenant_slug, project_id, models, priority, expires_at, key_limits = key
        tenant = self._rows["tenants_tenant"][tenant_slug]
        _, currency, time_zone, weight, cached_weight, suspended_at, *tenant_limits = tenant
        _, project, *project_row = self._rows["tenants_project"][str(project_id)]
        project_limits, project_weight = project_row[: len(LIMIT_FIELDS)], project_row[len(LIMIT_FIELDS) :]
        scopes = {
            ("key", public_id): dict(zip(LIMIT_FIELDS, key_limits, strict=True)),
            ("project", f"{tenant_slug}/{project}"): dict(zip(LIMIT_FIELDS, project_limits, strict=True)),
            ("tenant", tenant_slug): dict(zip(LIMIT_FIELDS, tenant_limits, strict=True)),
        }
        principal = Principal(
            tenant=tenant_slug,
            currency=currency,
            time_zone=time_zone,
            weight=float(weight),
            project=project,
            project_weight=float(project_weight[0]) if project_weight else 1.0,
            key=public_id,
            models=frozenset(models) if models else None,
            priority=priority,
            meters=[meter for (scope, name), limits in scopes.items() for meter in meters_of(scope, name, limits)],
            max_prompt_tokens=_tightest(scopes.values(), "max_prompt_tokens"),
            max_output_tokens=_tightest(scopes.values(), "max_output_tokens"),
            expires_at=expires_at.timestamp() if expires_at else None,
            usable=suspended_at is None,
            project_id=str(project_id),
            cached_input_weight=cached_weight,
        )
        of_models: dict[str, list[tuple[str, dict[str, int | None]]]] = {}
        scoped = {
            ref
            for of_project in ("", project)
            for of_key in ("", public_id)
            for ref in self._limits_of.get((tenant_slug, of_project, of_key), ())
        }
        for ref in sorted(scoped, key=int):
            _, _, of_project, of_key, model, *limits = self._rows["tenants_modellimits"][ref]
            name = f"{tenant_slug}/{of_project}/{of_key}:{model}"
            of_models.setdefault(model, []).append((name, dict(zip(LIMIT_FIELDS, limits, strict=True))))
        for model, found in of_models.items():
            principal.by_model[model] = _with_limits(principal, model, found)
        return principal


def _compact(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A key's row with its limits as one, sharing what is the same in many."""
    public_id, digest, tenant, project_id, models, priority, expires_at, *limits = row
    shared = _NO_LIMITS if all(limit is None for limit in limits) else tuple(limits)
    names = tuple(map(sys.intern, models))
    return public_id, bytes(digest), sys.intern(tenant), project_id, names, sys.intern(priority), expires_at, shared


def _discard(index: dict[str, set[str]], name: str, ref: str) -> None:
    if (refs := index.get(name)) is not None:
        refs.discard(ref)
        if not refs:
            del index[name]


def _with_limits(principal: Principal, model: str, found: list[tuple[str, dict[str, int | None]]]) -> Principal:
    meters = [meter for name, limits in found for meter in meters_of(f"model {model}", name, limits)]
    tightest = {}
    for name in ("max_prompt_tokens", "max_output_tokens"):
        own = {name: getattr(principal, name)}
        tightest[name] = _tightest([own, *(limits for _, limits in found)], name)
    return msgspec.structs.replace(principal, meters=principal.meters + meters, by_model={}, **tightest)


def _tightest(scopes: Iterable[dict[str, int | None]], name: str) -> int | None:
    return min((limits[name] for limits in scopes if limits[name] is not None), default=None)  # type: ignore[type-var]
