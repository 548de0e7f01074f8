"""The database itself and the three roles that everything works as.

headrace_owner   owns the tables; runs migrations
headrace_app     the screens and the API: row-level security binds it
headrace_system  worker, admin and snapshot: passes row-level security

None can log in. A login is made a member of them, and each connection begins as the one it is meant for (settings.py).
What each may do with the tables is said where the tables are made, in the migrations.
"""

from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

OWNER, APP, SYSTEM = "headrace_owner", "headrace_app", "headrace_system"
ROLES = {
    OWNER: "NOLOGIN NOBYPASSRLS",
    APP: "NOLOGIN NOBYPASSRLS",
    SYSTEM: "NOLOGIN BYPASSRLS",
}
_LOCK = 0x68656164  # "head": one process prepares at a time


class CannotPrepare(Exception):
    """The login may not create the roles or the database; the text says what an administrator has to do."""


def prepare(url: str) -> None:
    """Create what is missing of the roles and the database of `url`; repeat as often as you like.

    The login has to be a superuser, or have CREATEROLE, CREATEDB and BYPASSRLS. One that lacks these is enough where an
    administrator has created everything before and made the login a member of the three roles.
    """
    name = urlsplit(url).path.lstrip("/")
    with connect_beside(url) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        try:
            _create_roles(connection)
            _create_database(connection, name)
        except psycopg.errors.InsufficientPrivilege as error:
            raise CannotPrepare(
                f"the login of DATABASE_URL may not prepare the database {name} ({error}); have an administrator run "
                "`manage.py migrate` with a superuser's DATABASE_OWNER_URL, or create the roles "
                f"{', '.join(ROLES)}, the database owned by {OWNER}, and make the login a member of all three"
            ) from error
        with psycopg.connect(url, autocommit=True) as own:
            _let_owner_create(own, name)


def connect_beside(url: str, *, seconds: int = 30) -> "psycopg.Connection[tuple[object, ...]]":
    """A connection of the same server, to its `postgres` database: the wanted one may not exist yet."""
    beside = urlunsplit(urlsplit(url)._replace(path="/postgres"))
    try:
        return psycopg.connect(beside, autocommit=True, connect_timeout=seconds)
    except psycopg.OperationalError:  # some hosts allow a login its own database only
        return psycopg.connect(url, autocommit=True, connect_timeout=seconds)


def reason(error: BaseException) -> str:
    """Why a connection failed, in the server's or the system's own words: one line, no password."""
    return str(error).strip().partition("\n")[0].rpartition(" failed: ")[2]


def _create_roles(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    found = {
        row[0] for row in connection.execute("SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", [list(ROLES)])
    }
    for role, attributes in ROLES.items():
        if role not in found:
            connection.execute(sql.SQL("CREATE ROLE {} " + attributes).format(sql.Identifier(role)))
        member = connection.execute(
            "SELECT pg_has_role(current_user, %s, 'SET') OR rolsuper FROM pg_roles WHERE rolname = current_user", [role]
        ).fetchone()
        if member != (True,):
            connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(role)))


def _create_database(connection: "psycopg.Connection[tuple[object, ...]]", name: str) -> None:
    if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
        return
    connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(OWNER)))


def _let_owner_create(connection: "psycopg.Connection[tuple[object, ...]]", name: str) -> None:
    """A database that somebody else created (a container's first start, a hosting panel) becomes headrace_owner's."""
    may = connection.execute(
        "SELECT has_database_privilege(%(role)s, current_database(), 'CREATE')"
        " AND has_schema_privilege(%(role)s, 'public', 'CREATE')",
        {"role": OWNER},
    ).fetchone()
    if may == (True,):
        return
    try:
        connection.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(sql.Identifier(name), sql.Identifier(OWNER)))
    except psycopg.errors.InsufficientPrivilege as error:
        raise CannotPrepare(f"{OWNER} may not create tables in the database {name}: make it the owner") from error
