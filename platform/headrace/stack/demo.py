"""The demo tenant, its key, its model and the administrator: made once, found again at every later start."""

import json
import secrets
from pathlib import Path
from typing import Any

import yaml
from django.contrib.auth.models import User

from engines.models import Replica
from headrace.apply import apply_document
from headrace.stack import credentials
from tenants import keys
from tenants.members import add_member
from tenants.models import ApiKey, Role, Tenant

DOCUMENT = Path(__file__).with_name("demo.yaml")
POOL, REPLICA, TENANT, ADMINISTRATOR = "demo", "local", "demo", "admin"
_ACTOR = "manage.py up"


def prepare(path: Path, *, url: str, engine: str, engine_url: str) -> None:
    """Bring the demo into the database and write `path` (demo.json, mode 0600). May be repeated.

    The key and the administrator's password are those of an earlier `path`, if any. `engine_url` is empty where no
    engine runs.
    """
    known = _read(path)
    key = known.get("api_key") or keys.mint().text
    password = known.get("admin", {}).get("password") or secrets.token_urlsafe(12)
    credentials.write_private(
        path,
        json.dumps(
            {
                "url": url,
                "tenant": TENANT,
                "api_key": key,
                "admin": {"url": f"{url}/admin/", "username": ADMINISTRATOR, "password": password},
            },
            indent=2,
        )
        + "\n",
    )
    document = _document(key, engine, engine_url)
    apply_document(yaml.safe_dump(document, sort_keys=False), source=DOCUMENT.name, actor=_ACTOR)
    if not User.objects.filter(username=ADMINISTRATOR).exists():
        administrator = User.objects.create_superuser(ADMINISTRATOR, password=password)
        tenant = Tenant.objects.get(pk=TENANT)
        add_member(tenant=tenant, user=administrator, role=Role.OWNER)  # sees the portal from within


def _document(key: str, engine: str, engine_url: str) -> dict[str, Any]:
    """All of the demo where its key is unknown yet, else only the pool: where the engine is this time."""
    document: dict[str, Any] = yaml.safe_load(DOCUMENT.read_text())
    document["tenants"]["demo"]["keys"][0]["secret"] = key
    pool = document["pools"][POOL]
    if engine_url:
        pool["engine"] = engine
        pool["replicas"] = {REPLICA: {"url": engine_url, "enabled": True}}
    elif Replica.objects.filter(pool=POOL, name=REPLICA).exists():
        pool["replicas"] = {REPLICA: {"enabled": False}}
    if ApiKey.objects.filter(digest__in=keys.digests(key)).exists():
        del pool["cost_currency"]  # an operator's to change by now
        return {"pools": document["pools"]}
    return document


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text()))
    except (FileNotFoundError, ValueError):
        return {}
