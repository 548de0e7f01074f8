"""The three database roles, made before the first migration, which already works as one of them.

- `headrace_owner` owns the tables and runs migrations;
- `headrace_system` (worker, admin, the data plane's snapshot) reads and writes all tenants' rows;
- `headrace_app` (screens and API) sees the rows of one tenant: the one named in `headrace.tenant` of its transaction.

Roles belong to the whole database server; grants on tables are given by the migrations.
"""

from contextlib import suppress

import psycopg
from psycopg import sql

OWNER, SYSTEM, APP = "headrace_owner", "headrace_system", "headrace_app"
ATTRIBUTES = {OWNER: "NOLOGIN", SYSTEM: "NOLOGIN BYPASSRLS", APP: "NOLOGIN NOBYPASSRLS"}


class NoRoles(Exception):
    """This login may not make the roles it needs; the message says what an administrator runs."""


def prepare(url: str) -> None:
    """Make the roles where missing, let the login of `url` take each, and let the owner create tables in its database.

    May be repeated and may run in two processes at once. A login that is neither superuser nor CREATEROLE needs the
    roles made and granted beforehand; raises NoRoles without them.
    """
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            for role, attributes in ATTRIBUTES.items():
                _make(connection, role, attributes)
            connection.execute(f"GRANT USAGE, CREATE ON SCHEMA public TO {OWNER}")
            connection.execute(f"GRANT USAGE ON SCHEMA public TO {SYSTEM}, {APP}")
    except psycopg.errors.InsufficientPrivilege as error:
        raise NoRoles(f"{str(error).strip()}\nAn administrator of the database runs once:\n{by_hand()}") from error


def by_hand() -> str:
    """The statements an administrator runs for a login that may not create roles."""
    lines = [f"CREATE ROLE {role} {attributes};" for role, attributes in ATTRIBUTES.items()]
    lines += [f"GRANT {', '.join(ATTRIBUTES)} TO <the login>;", f"GRANT USAGE, CREATE ON SCHEMA public TO {OWNER};"]
    return "\n".join(lines)


def _make(connection: psycopg.Connection, role: str, attributes: str) -> None:
    name = sql.Identifier(role)
    if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone():
        # Another process may make it between the question and the answer.
        with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
            connection.execute(sql.SQL("CREATE ROLE {} " + attributes).format(name))
    superuser = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
    if superuser != (True,) and not _may_take(connection, role):
        connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(name))


def _may_take(connection: psycopg.Connection, role: str) -> bool:
    try:
        with connection.transaction():
            connection.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(role)))
    except psycopg.errors.InsufficientPrivilege:
        return False
    return True
