"""The principal of a caller that an operator names, with the limits above it, as the gateway's keyring makes it."""

from typing import Any

import psycopg

from tenants.keyring import SELECTS, Keyring, Principal
from tenants.models.limits import LIMIT_FIELDS

_UNLIMITED = (None,) * len(LIMIT_FIELDS)
_PROJECT = f"SELECT id, slug, {', '.join(LIMIT_FIELDS)}, weight FROM tenants_project WHERE tenant_id = %s AND slug = %s"


class UnknownCaller(Exception):
    """There is no such key, or it is another's; the message says which."""


async def read_principal(database_url: str, *, tenant: str, project: str, key: str) -> Principal:
    """Read the key's principal; without a key, that of one without limits of its own in the project and tenant.

    A tenant or project that does not exist counts as one without limits. Raises UnknownCaller, psycopg.Error, OSError.
    """
    connection = await psycopg.AsyncConnection.connect(database_url, autocommit=True, connect_timeout=3)
    async with connection:
        await connection.execute("SET ROLE headrace_system")
        return await _read(connection, tenant, project, key)


async def _read(connection: psycopg.AsyncConnection, tenant: str, project: str, key: str) -> Principal:
    key_row: tuple[Any, ...]
    if key:
        found = await _rows(connection, "tenants_apikey", key)
        if not found:
            raise UnknownCaller(f"there is no key {key}, or it is revoked")
        key_row = found[0]
        if tenant not in {"", key_row[2]}:
            raise UnknownCaller(f"the key {key} is not one of {tenant}")
        tenant = key_row[2]
        projects = await _rows(connection, "tenants_project", str(key_row[3]))
        if project not in {"", projects[0][1]}:
            raise UnknownCaller(f"the key {key} is not one of the project {project}")
    else:
        projects = await (await connection.execute(_PROJECT, [tenant, project])).fetchall()
        projects = projects or [(0, project, *_UNLIMITED, 1)]
        key_row = ("", b"", tenant, projects[0][0], [], "standard", None, *_UNLIMITED)
    tenants = await _rows(connection, "tenants_tenant", tenant)
    select, _ = SELECTS["tenants_modellimits"]
    limits = await (await connection.execute(f"{select} AND tenant_id = %s", [tenant])).fetchall()
    keyring = Keyring()
    keyring.load("tenants_tenant", tenants or [(tenant, "", "UTC", 1, 1, None, *_UNLIMITED)])
    keyring.load("tenants_project", projects)
    keyring.load("tenants_modellimits", limits)
    keyring.load("tenants_apikey", [key_row])
    principal = keyring.find(bytes(key_row[1]))
    assert principal is not None
    return principal


async def _rows(connection: psycopg.AsyncConnection, table: str, ref: str) -> list[tuple[Any, ...]]:
    select, among = SELECTS[table]
    return await (await connection.execute(f"{select} AND {among}", [[ref]])).fetchall()
