"""What the page shows of each pool and replica: the operators' rows beside the collector's picture."""

from typing import Any

import msgspec
import redis
from django.conf import settings
from django.urls import reverse

from engines.load.figures import KEPT_SECONDS, KEY, STALE_SECONDS, Fleet, Need, Report, decode
from engines.models import Pool, Replica

_FIGURES = ("running", "waiting", "waiting_tokens", "kv_used", "kv_capacity", "prefix_hit_rate", "retractions",
            "output_tokens_per_second")  # fmt: skip


def fleet() -> dict[str, Any]:
    """`pools`, each with its `replicas`; `age`: seconds since the picture was published, None: there is none."""
    published, now_ms, problem = _published()
    age = (now_ms - published.at) / 1000 if published.at else None
    if age is not None and age > KEPT_SECONDS:
        published, age = Fleet(0), None
    pools = Pool.objects.prefetch_related("replicas").order_by("name")
    rows = [_pool(pool, published.pools.get(pool.name), published, now_ms) for pool in pools]
    return {"pools": rows, "age": None if age is None else round(age, 1), "problem": problem}


def _published() -> tuple[Fleet, int, str]:
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2) as client:
            text: Any = client.get(KEY)
            seconds, micros = client.time()
    except redis.RedisError:
        return Fleet(0), 0, "Redis does not answer: nothing is known of the fleet now."
    now_ms = int(seconds) * 1000 + int(micros) // 1000
    if text is None:
        return Fleet(0), now_ms, "No collector runs: start one with manage.py collect."
    try:
        return decode(text), now_ms, ""
    except msgspec.MsgspecError:
        return Fleet(0), now_ms, "The collector is of another version."


def _pool(pool: Pool, need: Need | None, published: Fleet, now_ms: int) -> dict[str, Any]:
    replicas = sorted(pool.replicas.all(), key=lambda replica: replica.name)
    return {
        "name": pool.name,
        "model": pool.model,
        "engine": pool.get_engine_display(),
        "link": reverse("admin:engines_pool_change", args=[pool.pk]),
        "desired": need.desired if need else None,
        "ready": need.ready if need else None,
        "replicas": [_replica(r, published.replicas.get(f"{pool.name}/{r.name}"), now_ms) for r in replicas],
    }


def _replica(replica: Replica, report: Report | None, now_ms: int) -> dict[str, Any]:
    age = None if report is None or report.at is None else max(0.0, (now_ms - report.at) / 1000)
    load = report.load if report and age is not None and age <= STALE_SECONDS else None
    return {
        "name": replica.name,
        "url": replica.url,
        "state": report.state if report else "unknown",
        "reason": report.reason if report else "",
        "weight": report.weight if report else None,
        "age": None if age is None else round(age, 1),
        "enabled": replica.enabled,
        "drain": reverse("fleet:drain", args=[replica.pk]),
        **{name: getattr(load, name) if load else None for name in _FIGURES},
    }
