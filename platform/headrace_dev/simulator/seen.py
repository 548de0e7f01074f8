"""What the upstream saw and did: the truth that tests compare a gateway's books with."""

import time
from collections import OrderedDict, deque
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

How = Literal[
    "",  # still open
    "finished",  # sent to its end
    "closed_by_client",
    "aborted",  # by /abort_request
    "dropped",  # the script closed the connection
    "failed",  # an error event or error answer, after the request was taken
    "refused",  # an error answer or full queue instead of a generation
    "reset",  # by POST /control/reset
]

BODY_KEPT = 65536


@dataclass
class Entry:
    """One request. Times are seconds since the epoch; tokens are summed over the choices."""

    path: str
    headers: dict[str, str]
    body: Any = None
    rid: str = ""
    stream: bool = False
    t: float = field(default_factory=time.time)
    ended: float | None = None
    tokens_sent: int = 0  # written to a client that was still there
    tokens_generated: int = 0  # what an engine would have computed, and a hosted provider charged for
    client_left: float | None = None  # when its close was seen
    how: How = ""


class Seen:
    """Counters since the start or the last reset. `open` requests are those an engine would be busy with."""

    def __init__(self, *, kept: int = 1000, rids: int = 10000) -> None:
        self._kept, self._rids = kept, rids
        self.connections_open = 0
        self.connections_total = 0
        self.clear()

    def clear(self) -> None:
        self.open = 0
        self.peak = 0
        self.started = 0
        self.ended: dict[str, int] = {}
        self.client_closes = 0
        self.aborts = 0  # calls of /abort_request
        self.tokens_sent = 0
        self.tokens_generated = 0
        self.tokens_prefilled = 0  # prompt tokens of all requests, without those in the cache
        self.by_rid: OrderedDict[str, int] = OrderedDict()
        self.requests: deque[Entry] = deque(maxlen=self._kept)

    def note(self, entry: Entry) -> None:
        self.requests.append(entry)

    def begin(self, entry: Entry) -> None:
        self.note(entry)
        self.started += 1
        self.open += 1
        self.peak = max(self.peak, self.open)

    def close_seen(self, entry: Entry) -> None:
        if entry.client_left is None:
            entry.client_left = time.time()
            self.client_closes += 1

    def end(self, entry: Entry, how: How) -> None:
        entry.how, entry.ended = how, time.time()
        self.open -= 1
        self.ended[how] = self.ended.get(how, 0) + 1
        self.tokens_sent += entry.tokens_sent
        self.tokens_generated += entry.tokens_generated
        self.by_rid[entry.rid] = entry.tokens_sent
        if len(self.by_rid) > self._rids:
            self.by_rid.popitem(last=False)

    def stats(self) -> dict[str, Any]:
        """The answer of GET /control/stats. Token counts are of ended requests."""
        return {
            "open": self.open,
            "peak": self.peak,
            "started": self.started,
            **{how: self.ended.get(how, 0) for how in ("finished", "aborted", "dropped", "failed", "refused")},
            "closed_by_client": self.ended.get("closed_by_client", 0),
            "client_closes": self.client_closes,
            "abort_calls": self.aborts,
            "tokens_sent": self.tokens_sent,
            "tokens_generated": self.tokens_generated,
            "tokens_by_rid": dict(self.by_rid),
            "connections": {"open": self.connections_open, "total": self.connections_total},
        }

    def listing(self) -> list[dict[str, Any]]:
        """The answer of GET /control/requests, oldest first."""
        return [asdict(entry) for entry in self.requests]
