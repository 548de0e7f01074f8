"""Asking a web process as one key, and reading what it answered and what it put on record."""

import base64
import copy
import json
import secrets
import time
from functools import cached_property
from typing import Any

import httpx
from django.db import transaction
from prometheus_client.parser import text_string_to_metric_families

from engines.models import Pool, Provider, Replica
from headrace_dev.testing.upstream import ScriptedUpstream, prompt
from headrace_dev.testing.web import WebProcess
from headrace_dev.testing.world import World
from routing.models import Model, Route, Target

# One for the session: making a client costs more than a request.
# 200 at one instant are not 100 and then 100; and what is over a limit httpx closes, now and then while it is in use.
_NO_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=None)
_http = httpx.Client(trust_env=False, timeout=60, limits=_NO_LIMITS)


class Answer:
    """What came back. `raw` is the body as it came, whatever its form."""

    def __init__(self, web: WebProcess, response: httpx.Response) -> None:
        self._web = web
        self.status, self.headers, self.raw = response.status_code, response.headers, response.content
        self.id = response.headers.get("x-request-id", "")

    @cached_property
    def json(self) -> Any:
        return json.loads(self.raw)

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """A stream's events. Every line is checked to be one a strict client takes."""
        assert self.headers["content-type"].startswith("text/event-stream"), self.raw
        blocks = self.raw.decode().removesuffix("\n\n").split("\n\n")
        found = []
        for block in blocks:
            if block.startswith(":"):
                continue
            assert block.startswith("data: "), block
            assert "\n" not in block, block
            if block != "data: [DONE]":
                found.append(json.loads(block[6:]))
        return found

    @property
    def is_done(self) -> bool:
        return self.raw.endswith(b"data: [DONE]\n\n")

    @property
    def text(self) -> str:
        """The content of choice 0, streamed or whole."""
        if not self.headers["content-type"].startswith("text/event-stream"):
            return str(self.json["choices"][0]["message"]["content"])
        deltas = [
            choice["delta"] for event in self.events for choice in event.get("choices", ()) if not choice["index"]
        ]
        return "".join(delta.get("content") or "" for delta in deltas)

    @property
    def usage(self) -> dict[str, Any] | None:
        """The one usage object of the answer; None without one."""
        events = [self.json] if self.headers["content-type"] == "application/json" else self.events
        found = [event["usage"] for event in events if event.get("usage")]
        assert len(found) <= 1, found
        return found[0] if found else None

    @property
    def error(self) -> dict[str, Any]:
        """The error envelope, of the answer or of a stream's last event."""
        last = self.json if self.headers["content-type"] == "application/json" else self.events[-1]
        error: dict[str, Any] = last["error"]
        assert set(last) == {"error"}
        assert set(error) == {"message", "type", "param", "code"}
        return error

    @property
    def record(self) -> dict[str, Any]:
        """The usage record of this request, as logged."""
        return record(self._web, self.id)


def record(web: WebProcess, request_id: str, seconds: float = 5) -> dict[str, Any]:
    """The one record of a request in the log of `web`."""
    deadline = time.monotonic() + seconds
    while not (found := records(web, request_id)):
        assert time.monotonic() < deadline, f"no record of {request_id}"
        time.sleep(0.02)
    assert len(found) == 1, found
    return found[0]


def records(web: WebProcess, needle: str) -> list[dict[str, Any]]:
    """The records in the log of `web` whose line holds `needle`."""
    lines = web.log.read_bytes().splitlines()
    return [json.loads(line) for line in lines if line.startswith(b'{"v":') and needle.encode() in line]


def metric(web: WebProcess, name: str, **labels: str) -> float:
    """The sum of a metric's samples with these labels, as the web process tells it."""
    text = _http.get(f"{web.url}/metrics").text
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return sum(each.value for each in samples if each.name == name and labels.items() <= each.labels.items())


class Hosted:
    """A provider as a target; `fields` are the target's."""

    def __init__(self, url: str, **fields: Any) -> None:
        self.url, self.fields = url, fields


class Place:
    """A tenant with a key and a model, and further models of other routes. `chat` asks as that key."""

    def __init__(self, web: WebProcess, upstream: ScriptedUpstream) -> None:
        upstream.reset()
        self.web, self.upstream = web, upstream
        self.world = World(upstream.url).wait_known(web)

    def at(self, web: WebProcess) -> "Place":
        """The same world, asked at another web process."""
        other = copy.copy(self)
        other.web = web
        self.world.webs[web] = None
        return other

    @transaction.atomic  # known with its target, or not at all
    def add_model(
        self,
        *,
        url: str | None = None,
        engine: str = "sglang",
        provider: bool = False,
        context_window: int = 100_000,
        default_max_tokens: int = 1000,
        **route: Any,
    ) -> str:
        """A further model: of the world's own pool, of a new pool at `url`, or of a provider. Its name."""
        name = f"{self.world.model}-{secrets.token_hex(3)}"
        model = Model.objects.create(name=name, context_window=context_window, default_max_tokens=default_max_tokens)
        where: dict[str, Any] = {"pool_id": self.world.name}
        if provider:
            base_url = f"{url or self.upstream.url}/v1"
            where = {"provider": Provider.objects.create(name=name, base_url=base_url), "upstream_model": "hosted"}
        elif url is not None:
            where = {"pool": Pool.objects.create(name=name, engine=engine, model="scripted")}
            Replica.objects.create(pool=where["pool"], name="r1", url=url)
        Target.objects.create(route=Route.objects.create(model=model, **route), position=0, **where)
        return name

    def add_route(self, *targets: "list[str] | Hosted", context_window: int = 100_000, **route: Any) -> str:
        """A further model whose targets are, in order, pools of replicas at these addresses, or providers. Its name."""
        name = f"{self.world.model}-{secrets.token_hex(3)}"
        with transaction.atomic():  # known with all its targets, or not at all
            model = Model.objects.create(name=name, context_window=context_window, default_max_tokens=1000)
            row = Route.objects.create(model=model, **route)
            for position, target in enumerate(targets):
                slug = f"{name.lower()}-{position}"
                if isinstance(target, Hosted):
                    provider = Provider.objects.create(name=slug, base_url=f"{target.url}/v1")
                    where: dict[str, Any] = {"provider": provider, "upstream_model": "hosted", **target.fields}
                else:
                    where = {"pool": Pool.objects.create(name=slug, engine="sglang", model="scripted")}
                    for number, url in enumerate(target):
                        Replica.objects.filter(url=url).delete()  # an earlier route had it
                        Replica.objects.create(pool=where["pool"], name=f"r{number}", url=url)
                Target.objects.create(route=row, position=position, **where)
        self.wait_known(name)
        return name

    def metric(self, name: str, **labels: str) -> float:
        return metric(self.web, name, **labels)

    def wait_known(self, *models: str, secret: str | None = None) -> None:
        """Wait until the web process knows these models, and the key."""
        deadline = time.monotonic() + 10
        while True:
            answer = _http.get(f"{self.web.url}/v1/models", headers=self.world.headers(secret))
            known = {model["id"] for model in answer.json().get("data", ())}
            if answer.status_code == 200 and known.issuperset(models):
                return
            assert time.monotonic() < deadline, answer.text
            time.sleep(0.05)

    def body(self, content: Any = "Hello", **fields: Any) -> dict[str, Any]:
        return self.world.body(content, **fields)

    def chat(
        self, content: Any = "Hello", *, secret: str | None = None, headers: dict[str, str] | None = None, **fields: Any
    ) -> Answer:
        """Send a chat and read the whole answer. Fields are the body's."""
        return self.send(json.dumps(self.body(content, **fields)).encode(), secret=secret, headers=headers)

    def scripted(self, more: str = "", /, *, fields: dict[str, Any] | None = None, **script: Any) -> Answer:
        """A chat whose message tells the upstream what to do; `fields` are the body's."""
        return self.chat(prompt(more, **script), **(fields or {}))

    def events_from_upstream(self, events: list[Any], **fields: Any) -> Answer:
        """A chat whose upstream sends exactly these events, and [DONE]."""
        segments = [f"data: {json.dumps(event)}\n\n" for event in events] + ["data: [DONE]\n\n"]
        raw = [base64.b64encode(segment.encode()).decode() for segment in segments]
        return self.scripted(fields=fields, raw=raw)

    def send(
        self,
        body: bytes,
        *,
        path: str = "/v1/chat/completions",
        method: str = "POST",
        secret: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        sent = self.world.headers(secret) | {"content-type": "application/json"} | (headers or {})
        return Answer(self.web, _http.request(method, f"{self.web.url}{path}", content=body, headers=sent))

    def seen(self, answer: Answer | None = None) -> dict[str, Any]:
        """The last chat the upstream saw, or that of an answer's record."""
        seen = self.upstream.requests()
        if answer is None:
            return seen[-1]
        [found] = [request for request in seen if request["rid"] == answer.record["upstream_id"]]
        return found
