"""Who carries settlement: the worker's tasks, and the collector beside them."""

from typing import Any

import msgspec
import redis

from engines.load.figures import KEPT_SECONDS, KEY, decode
from headrace.console.settlement.section import BAD, GOOD, TIGHT, Section
from headrace.quantities import age
from headrace.worker import signs_of_life
from headrace.worker.signs_of_life import Sign

FREQUENT = 60.0  # seconds between runs of those tasks whose silence means that no worker runs
SILENT_MS = 30_000
_WORDS = {
    "drain": "Writes usage into the ledger",
    "keep-budgets": "Makes budgets' counters",
    "reap": "Settles for processes that died",
    "alerts": "Tells of budgets' thresholds",
    "refusals": "Counts who was refused",
    "invoices": "Closes months, issues invoices",
    "partitions": "Makes the next months' tables",
    "rebuild-budgets": "Compares budgets with the ledger",
    "retention": "Drops records past retention",
    "sessions": "Forgets sessions that are over",
    "check-ledger": "Compares the books",
}
_WHAT_TO_DO = (
    "Start a worker and one beat (celery -A headrace worker, celery -A headrace beat), or read the worker's log:"
    " without them nothing is billed, reaped or told."
)


def workers(client: "redis.Redis", now_ms: int) -> Section:
    found = signs_of_life.read(client)
    frequent = [sign for sign in found if sign.every <= FREQUENT]
    stopped = [sign.name for sign in frequent if _is_late(sign, now_ms, missed=5)]
    late = [sign.name for sign in found if sign.at is not None and _is_late(sign, now_ms, missed=2)]
    if len(stopped) == len(frequent):
        figure = "not running"
    elif stopped or late:
        figure = f"late: {', '.join(stopped or late)}"
    else:
        figure = "running"
    last = max((sign.at for sign in found if sign.at is not None), default=None)
    return Section(
        "Workers",
        BAD if stopped else TIGHT if late else GOOD,
        figure,
        f"Last sign of life: {_ago(last, now_ms, 'never')}.",
        _WHAT_TO_DO if stopped or late else "",
        None,
        ("Task", "Runs every", "Last ran", "On"),
        frozenset({"Runs every", "Last ran"}),
        [
            *((_WORDS.get(sign.name, sign.name), age(sign.every * 1000), _ago(sign.at, now_ms, "not yet"), sign.host)
              for sign in found),
            ("Samples the fleet (manage.py collect)", "1 s", _collector(client, now_ms), ""),
        ],
    )  # fmt: skip


def _is_late(sign: Sign, now_ms: int, *, missed: int) -> bool:
    """Whether so many runs in a row did not come, or none ever did."""
    return sign.at is None or now_ms - sign.at > max(SILENT_MS, (missed + 0.5) * 1000 * sign.every)


def _ago(at: int | None, now_ms: int, otherwise: str) -> str:
    return otherwise if at is None else f"{age(now_ms - at)} ago"


def _collector(client: "redis.Redis", now_ms: int) -> str:
    text: Any = client.get(KEY)
    try:
        at = decode(text).at if text else None
    except msgspec.MsgspecError:
        return "another version"
    return _ago(at, now_ms, "not running") if at and now_ms - at < KEPT_SECONDS * 1000 else "not running"
