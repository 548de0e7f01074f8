"""A small world for end-to-end tests: a tenant with a key, and a model behind a scripted upstream."""

import secrets
import time
from decimal import Decimal
from typing import Any

import httpx
import redis
from django.db import transaction

from billing import drain
from billing.models import Price, UsageRecord
from engines.models import Pool, Replica
from headrace_core import store_keys
from headrace_dev.testing.web import WebProcess
from routing.models import Model, Route, Target
from tenants import keys
from tenants.api_keys import issue_key
from tenants.meters import holds
from tenants.models import ApiKey, Project, Tenant
from tenants.projects import add_project
from tenants.tenants import add_tenant

# Making one costs more than a request. It keeps no connection: tests count those that a web process has.
_http = httpx.Client(trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))


class World:
    """Rows are committed; each world has names of its own, so that worlds share a database and a web process."""

    @transaction.atomic  # known whole, or not at all
    def __init__(
        self,
        upstream_url: str,
        *,
        engine: str = "sglang",
        upstream_model: str = "scripted",
        context_window: int = 100_000,
    ) -> None:
        self.webs: dict[WebProcess, None] = {}  # those that know the world, in order
        self.name = f"w{secrets.token_hex(5)}"
        self.model = f"model-{self.name}"
        pool = Pool.objects.create(name=self.name, engine=engine, model=upstream_model)
        Replica.objects.filter(url=upstream_url).delete()  # an earlier test's world had it
        Replica.objects.create(pool=pool, name="r1", url=upstream_url)
        model = Model.objects.create(name=self.model, context_window=context_window, default_max_tokens=1000)
        self.route = Route.objects.create(model=model)
        Target.objects.create(route=self.route, position=0, pool=pool)
        self.tenant = self.add_tenant("acme")
        self.project = add_project(tenant=self.tenant, slug="app", name="App")
        self.key, self.secret = self.add_key()

    def add_tenant(self, name: str, **limits: int) -> Tenant:
        terms: Any = limits
        return add_tenant(slug=f"{name}-{self.name}", name=name, **terms)

    def add_key(self, project: Project | None = None, **fields: Any) -> tuple[ApiKey, str]:
        """A new key (of the world's own project unless another is given) and its text."""
        project = project or self.project
        minted = keys.mint()
        issued = issue_key(project=project, name=f"key-{minted.public_id}", minted=minted, **fields)
        return issued.key, issued.text

    def price(self, input: str = "1", cached_input: str = "0.25", output: str = "4", **fields: Any) -> Price:
        """Set a price of the model, in force from now on; wait until the web processes that know the world follow."""
        price = Price.objects.create(
            **{"model": self.model, "currency": self.tenant.currency}
            | {"input": Decimal(input), "cached_input": Decimal(cached_input), "output": Decimal(output)}
            | fields
        )
        self.wait_followed()
        return price

    def headers(self, secret: str | None = None) -> dict[str, str]:
        return {"authorization": f"Bearer {secret or self.secret}"}

    def body(self, content: str = "Hello", **fields: Any) -> dict[str, Any]:
        return {"model": self.model, "messages": [{"role": "user", "content": content}], **fields}

    def wait_known(self, *webs: WebProcess, secret: str | None = None) -> "World":
        """Wait until each web process knows the world's key and model; what changes later is awaited there too."""
        self.webs.update(dict.fromkeys(webs))
        deadline = time.monotonic() + 5
        for web in webs:
            while True:
                answer = _http.get(f"{web.url}/v1/models", headers=self.headers(secret))
                if answer.status_code == 200 and self.model in answer.text:
                    break
                assert time.monotonic() < deadline, answer.text
                time.sleep(0.05)
        return self

    def wait_followed(self, *webs: WebProcess) -> None:
        """Wait until each web process (all that know the world, unless some are given) knows what was written so far.

        Changes are followed in their order, so a process that knows a new key knows all before it.
        """
        if webs := webs or tuple(self.webs):
            _, secret = self.add_key()
            self.wait_known(*webs, secret=secret)


def drained(client: "redis.Redis") -> None:
    """Have everything in the usage stream written to the ledger."""
    while client.xlen(holds.USAGE):
        drain.drain_all(client)


def records(world: World) -> list[UsageRecord]:
    """The ledger's records of the world's model, oldest first."""
    return list(UsageRecord.objects.filter(model=world.model).order_by("admitted_at", "request_id"))


def at_rest(client: "redis.Redis", seconds: float = 5) -> None:
    """Wait until there is no hold and no gauge; raises AssertionError with what is left."""
    deadline = time.monotonic() + seconds
    while True:
        left = list(holds.living(client))
        gauges = [key for key in client.scan_iter(f"{store_keys.METER}*:concurrency")] + [
            key for key in client.scan_iter(f"{store_keys.ROOM}*")
        ]
        if not left and not gauges:
            return
        assert time.monotonic() < deadline, (left, gauges)
        time.sleep(0.02)
