"""Metrics of the data plane, named `headrace_*`, in Prometheus's text format: all processes of a home in one answer.

Each process keeps its values in files under HOME/metrics (prometheus_client's multi-process mode; settings.py sets the
directory), so any of them can answer for all.
"""

import asyncio
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from billing.usage import UsageEvent
from headrace import metrics_page
from headrace.gateway import errors
from headrace_core import log_writer
from routing.catalog import Route

Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]).mkdir(parents=True, exist_ok=True)

# A page that takes longer is given up. Beyond so many tenants by model and target, a process tells of further ones
# together, as of the tenant `other`: each takes four series and more.
_RENDER_SECONDS = 60.0
_MOST_PLACES = 5_000
_SOURCE = str(Path(metrics_page.__file__).resolve().parents[1])
_rendering = asyncio.Lock()
_places: set[tuple[str, str, str]] = set()
_REQUEST = ("tenant", "model", "target", "status")
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

REQUESTS = Counter("headrace_requests", "Requests settled.", _REQUEST)
TOKENS = Counter(
    "headrace_tokens", "Tokens billed; class is uncached, cached or output.", ("tenant", "model", "target", "class")
)
ESTIMATED = Counter("headrace_usage_estimated", "Records whose usage is not the upstream's.", ("model", "target"))
OVERRUNS = Counter(
    "headrace_overruns",
    "Requests whose upstream gave or told more tokens than were asked for, which nobody is billed for.",
    ("model", "target", "class"),
)
TTFT = Histogram("headrace_ttft_seconds", "From admission to the first byte.", ("model", "target"), buckets=_SECONDS)
REQUEST_SECONDS = Histogram(
    "headrace_request_seconds",
    "From admission to the end of the answer.",
    ("model", "target"),
    buckets=(*_SECONDS, 120.0, 300.0, 600.0),
)
TPOT = Histogram(
    "headrace_tpot_seconds",
    "Time per output token after the first.",
    ("model", "target"),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.25, 1.0),
)
# Of requests whose engine said how much of the prompt its cache had; the ratio to prompt tokens is the hit rate.
PREFIX_TOKENS = Counter(
    "headrace_prefix_tokens",
    "Prompt tokens in the chosen replica's cache; class is predicted by the prefix index, or reported by the engine.",
    ("model", "target", "class"),
)
PREFIX_ENTRIES = Gauge("headrace_prefix_index_entries", "Blocks the prefix indexes hold.", multiprocess_mode="livesum")
PREFIX_BYTES = Gauge("headrace_prefix_index_bytes", "Memory the prefix indexes take.", multiprocess_mode="livesum")
WAITING = Gauge("headrace_waiting", "Requests that wait for room.", ("model",), multiprocess_mode="livesum")
QUEUED = Histogram(
    "headrace_queue_seconds", "From admission to room, of those that waited.", ("model", "target"), buckets=_SECONDS
)
# Of streamed requests of routes that have a target; those whose client left say nothing.
GOODPUT = Counter(
    "headrace_goodput",
    "Streamed requests by whether they were answered within their route's ttft_target and tpot_target.",
    ("model", "target", "within"),
)
SHADOWS = Counter("headrace_shadows", "Copies for shadow targets, by how they ended.", ("outcome",))
REFUSED = Counter("headrace_refused", "Requests refused before admission, by error code.", ("code",))
# sent: a further attempt was made; no_budget: there were too many of late; no_room: nobody else had room.
RETRIES = Counter("headrace_retries", "Further attempts wanted before the first byte, by outcome.", ("outcome",))
FALLBACKS = Counter("headrace_fallbacks", "Requests settled at another than their first upstream.", ("model", "target"))
BREAKER = Gauge(
    "headrace_breaker_state",
    "0 closed, 1 may be tried again, 2 open; the worst of its models and of all processes.",
    ("replica",),
    multiprocess_mode="livemax",
)
QUARANTINED = Gauge(
    "headrace_quarantined_prompts",
    "Prompts that are refused because engines broke down at them.",
    multiprocess_mode="livemax",
)
# taken: the engine took the word; failed: it did not; ignored: it worked on all the same, for nobody.
ABORTS = Counter("headrace_upstream_aborts", "Attempts given up, by what the engine made of it.", ("outcome",))
LOG_DROPPED = Counter("headrace_log_lines_dropped", "Lines of the log that nobody read in time.", ("stream",))


def begin() -> None:
    """Have each refusal told as 0 until it happens; a process without a descriptor left can then still refuse.

    For processes that serve. Commands import this module as well: each would leave a file behind, to be read for ever.
    """
    for code in errors.TABLE:
        REFUSED.labels(code)
    for writer in log_writer.WRITERS.values():
        LOG_DROPPED.labels(writer.name)
        writer.on_drop = lambda name: LOG_DROPPED.labels(name).inc()


def observe(event: UsageEvent, route: Route, *, seconds: float, is_streamed: bool) -> None:
    """Count one settled request of `route`, which took so many `seconds` from its admission on."""
    where = _place(event)
    REQUESTS.labels(*where, event.status).inc()
    if event.input_tokens or event.output_tokens:
        TOKENS.labels(*where, "uncached").inc(event.input_tokens - event.cached_input_tokens)
        TOKENS.labels(*where, "cached").inc(event.cached_input_tokens)
        TOKENS.labels(*where, "output").inc(event.output_tokens)
    if event.usage_source != "reported":
        ESTIMATED.labels(event.model, event.target).inc()
    if event.fallback:
        FALLBACKS.labels(event.model, event.target).inc()
    if event.queue_ms:
        QUEUED.labels(event.model, event.target).observe(event.queue_ms / 1000)
    if event.ttft_ms is not None:
        TTFT.labels(event.model, event.target).observe(event.ttft_ms / 1000)
    if event.tpot_ms is not None:
        TPOT.labels(event.model, event.target).observe(event.tpot_ms / 1000)
    REQUEST_SECONDS.labels(event.model, event.target).observe(seconds)
    if is_streamed and (within := is_good(event, route)) is not None:
        GOODPUT.labels(event.model, event.target, "yes" if within else "no").inc()


def _place(event: UsageEvent) -> tuple[str, str, str]:
    """Tenant, model and target, as the metrics tell them."""
    where = (event.tenant, event.model, event.target)
    if where not in _places:
        if len(_places) >= _MOST_PLACES:
            return ("other", event.model, event.target)
        _places.add(where)
    return where


def is_good(event: UsageEvent, route: Route) -> bool | None:
    """Whether it was answered within its route's targets; None where there is none, or the client left."""
    if (route.ttft_target is None and route.tpot_target is None) or event.status == "cancelled":
        return None
    if event.status != "ok" or event.ttft_ms is None:
        return False
    is_prompt = route.ttft_target is None or event.ttft_ms / 1000 <= route.ttft_target
    is_steady = route.tpot_target is None or event.tpot_ms is None or event.tpot_ms / 1000 <= route.tpot_target
    return is_prompt and is_steady


def prefix(model: str, target: str, predicted: int, reported: int) -> None:
    """Count what was predicted of one prompt's prefix beside what its engine reported."""
    PREFIX_TOKENS.labels(model, target, "predicted").inc(predicted)
    PREFIX_TOKENS.labels(model, target, "reported").inc(reported)


def tell_breaker(replica: str, state: int) -> None:
    """A breaker of this process changed its state."""
    BREAKER.labels(replica).set(state)


def breaker_states() -> dict[str, int]:
    """The worst state of each upstream's breaker in the processes of this home that live; closed where none is said."""
    _forget_the_dead()
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    families = [family for family in registry.collect() if family.name == "headrace_breaker_state"]
    return {each.labels["replica"]: int(each.value) for family in families for each in family.samples}


def _forget_the_dead() -> None:
    """Gauges say what is: those of processes that are gone say nothing."""
    for path in Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]).glob("gauge_live*_*.db"):
        pid = path.stem.rpartition("_")[2]
        if not Path(f"/proc/{pid}").exists():
            with suppress(FileNotFoundError):  # somebody else was asked as well, and was quicker
                mark_process_dead(pid)  # type: ignore[no-untyped-call]


class _Told:
    """Families that were made elsewhere, for a registry."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families


async def render(more: Iterable[Metric] = ()) -> bytes:
    """The values of all processes, and `more`, as Prometheus reads them: one such page at a time.

    50 us a series, in a process of its own; where none can be started, in a thread.
    """
    async with _rendering:
        await asyncio.to_thread(_forget_the_dead)
        try:
            page = await _render_apart()
        except OSError:
            page = await asyncio.to_thread(metrics_page.render)
    registry = CollectorRegistry()
    registry.register(_Told(more))
    return page + generate_latest(registry)


async def _render_apart() -> bytes:
    """Raises OSError where no process could be started, or it failed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "headrace.metrics_page",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": _SOURCE},
    )
    try:
        async with asyncio.timeout(_RENDER_SECONDS):
            page, _ = await process.communicate()
    except BaseException:
        if process.returncode is None:
            process.kill()
        raise
    if process.returncode:
        raise OSError(f"the page of metrics ended with status {process.returncode}")
    return page
