"""DATABASE_URL and REDIS_URL as Django and Celery want to be told them.

The libraries that the rest of the product uses (libpq, redis-py) read an address whole. Django has no addresses, and
Celery's own reading knows neither sockets nor options, and takes any certificate for good.
"""

import socket
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict
from redis.connection import parse_url

from headrace_core import env, store_keys

# A server that is gone without a word, as after a failover, is noticed within half a minute. Else the kernel waits for
# two hours, and whoever waits for an answer with it.
_DEATH: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
# An address may lead to another server any time: a pool that kept its connections would stay with what was the primary.
_POOLED_SECONDS = 60.0


def database(url: str, role: str, *, pool: int = 0) -> dict[str, Any]:
    """Django's settings for `url`, working as `role`: one login may take each of the three roles of migration 0001.

    Options of the address (sslmode, several hosts, ...) are libpq's. pool: the most connections kept, 0 = none.
    """
    scheme = urlsplit(url).scheme
    if scheme not in {"postgres", "postgresql"}:
        raise env.BadSetting(f"DATABASE_URL must begin with postgresql://, not {scheme}://")
    try:
        parts: dict[str, Any] = dict(conninfo_to_dict(url))
    except psycopg.ProgrammingError:  # its text may hold the password
        raise env.BadSetting("DATABASE_URL is not an address that PostgreSQL's libpq can read") from None
    said = {name: str(parts.pop(name, "") or "") for name in ("dbname", "user", "password", "host", "port")}
    # The role as the connection begins with it: Django's `assume_role` asks the pool for a connection to make one.
    # What is given here takes the place of PGOPTIONS, which libpq would have read.
    started_with = parts.pop("options", "") or env.text("PGOPTIONS", "")
    options = _DEATH | parts | {"options": f"{started_with} -c role={role}".strip()}
    if pool:
        options["pool"] = {"min_size": 1, "max_size": pool, "timeout": 5, "max_lifetime": _POOLED_SECONDS}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": said["dbname"],
        "USER": said["user"],
        "PASSWORD": said["password"],
        "HOST": said["host"],
        "PORT": said["port"],
        "OPTIONS": options,
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": bool(pool),  # the database may have restarted since
    }


def broker(url: str) -> tuple[str, dict[str, Any] | None]:
    """`url` as Celery's transport reads it, and what it has to know of TLS (None: none)."""
    try:
        parts: dict[str, Any] = dict(parse_url(url))  # type: ignore[no-untyped-call]
    except ValueError:
        raise env.BadSetting("REDIS_URL must begin with redis://, rediss:// or unix://") from None
    user, password = (quote(parts.get(name) or "", safe="") for name in ("username", "password"))
    login = f"{user}:{password}@" if user or password else ""
    number = parts.get("db", 0)
    if "path" in parts:
        return f"redis+socket://{login}{quote(parts['path'])}?virtual_host={number}", None
    host = parts.get("host", "localhost")
    place = f"[{host}]" if ":" in host else host
    tls = {name: value for name, value in parts.items() if name.startswith("ssl_")}
    plain = f"redis://{login}{place}:{parts.get('port', 6379)}/{number}"
    return plain, {"ssl_cert_reqs": "required", **tls} if urlsplit(url).scheme == "rediss" else None


# For the broker's connections: one that waits for work would wait for ever for a server that is gone.
BROKER_OPTIONS: dict[str, Any] = {
    "global_keyprefix": store_keys.CELERY,
    "socket_connect_timeout": 10,
    "socket_timeout": 30,
    "socket_keepalive": True,
    "socket_keepalive_options": {socket.TCP_KEEPIDLE: 10, socket.TCP_KEEPINTVL: 5, socket.TCP_KEEPCNT: 3},
}
