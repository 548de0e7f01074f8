"""Queries of death: prompts after which engines broke, and for how long each is refused.

A break is a connection that was lost once a request had gone out on it; those that one replica loses at one moment are
one. After one the prompt may be tried once more;
after two within an hour it is refused for five minutes, and twice as long for each further break, up to an hour. A
prompt that is answered after all is innocent, and forgotten. Where many prompts come to their second break at once it
is a network or a fleet that broke: they are refused for some seconds only.

Prompts are kept as keyed hashes, by tenant and model: nobody reads one out of what is kept or shared, and no tenant
learns of another's.
"""

import hashlib
import time
from collections import OrderedDict, deque
from collections.abc import Callable

import msgspec

BREAKS = 2
FIRST_PAUSE, LONGEST_PAUSE = 300.0, 3600.0
REMEMBERED_SECONDS = 3600.0
MOST_PROMPTS = 4096
# More prompts than this that come to their second break within so many seconds: the prompts are not to blame.
OUTAGE_PROMPTS, OUTAGE_SECONDS, OUTAGE_PAUSE = 16, 10.0, 10.0
# What one replica breaks at within so many seconds is one crash, however many equal prompts it had.
SAME_CRASH_SECONDS = 2.0
_DIGEST_BYTES = 16


class Suspect(msgspec.Struct):
    """One prompt. broke_at, refused_until: seconds of the table's clock; replicas: when each last broke at it."""

    owner: tuple[str, str]
    replicas: dict[str, float] = {}
    breaks: int = 0
    broke_at: float = 0.0
    refused_until: float = 0.0


class Quarantine:
    """The prompts that broke engines, as far as this process knows; at most `MOST_PROMPTS`, the latest to break."""

    def __init__(self, secret: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._key = hashlib.blake2b(secret.encode(), digest_size=32, person=b"hr:quarantine").digest()
        self._clock = clock
        self._suspects: OrderedDict[bytes, Suspect] = OrderedDict()
        self._owners: dict[tuple[str, str], int] = {}  # how many suspects each has
        self._second_breaks: deque[float] = deque(maxlen=OUTAGE_PROMPTS + 1)

    def digest(self, tenant: str, model: str, prompt: bytes | memoryview) -> bytes:
        held = hashlib.blake2b(key=self._key, digest_size=_DIGEST_BYTES)
        for part in (tenant.encode(), model.encode(), prompt):
            held.update(len(part).to_bytes(8, "big"))
            held.update(part)
        return held.digest()

    def has_suspects(self, tenant: str, model: str) -> bool:
        """Whether a prompt of the tenant's for this model broke an engine: if not, no prompt need be hashed."""
        return bool(self._owners) and (tenant, model) in self._owners

    def wait(self, digest: bytes) -> float:
        """For how many seconds the prompt is refused; 0: it is not."""
        suspect = self._suspects.get(digest)
        return 0.0 if suspect is None else max(0.0, suspect.refused_until - self._clock())

    def note_break(self, digest: bytes, tenant: str, model: str, replica: str, *, age: float = 0.0) -> bool:
        """A replica broke at the prompt, `age` seconds ago; whether the prompt is refused from now on."""
        self._forget_old()
        now = self._clock() - age
        suspect = self._suspects.get(digest)
        if suspect is None:
            suspect = self._suspects[digest] = Suspect((tenant, model))
            self._owners[suspect.owner] = self._owners.get(suspect.owner, 0) + 1
        self._suspects.move_to_end(digest)
        before = suspect.replicas.get(replica)
        if before is not None and abs(now - before) < SAME_CRASH_SECONDS:
            return suspect.breaks >= BREAKS
        suspect.replicas[replica] = now
        suspect.breaks += 1
        suspect.broke_at = max(suspect.broke_at, now)
        if suspect.breaks == BREAKS:
            self._second_breaks.append(now)
        if suspect.breaks >= BREAKS:
            first = OUTAGE_PAUSE if self._is_outage(now) else FIRST_PAUSE
            pause = min(LONGEST_PAUSE, first * 2.0 ** min(16, suspect.breaks - BREAKS))
            suspect.refused_until = max(suspect.refused_until, now + pause)
        if len(self._suspects) > MOST_PROMPTS:
            self._remove(next(iter(self._suspects)))
        return suspect.breaks >= BREAKS

    def forgive(self, digest: bytes) -> bool:
        """The prompt was answered; whether it was a suspect."""
        is_known = digest in self._suspects
        if is_known:
            self._remove(digest)
        return is_known

    @property
    def refused(self) -> int:
        """How many prompts are refused now."""
        now = self._clock()
        return sum(each.refused_until > now for each in self._suspects.values())

    def _is_outage(self, now: float) -> bool:
        latest = self._second_breaks
        return len(latest) > OUTAGE_PROMPTS and now - latest[0] < OUTAGE_SECONDS

    def _forget_old(self) -> None:
        before = self._clock() - REMEMBERED_SECONDS
        while self._suspects:
            digest, suspect = next(iter(self._suspects.items()))
            if suspect.broke_at >= before or suspect.refused_until > self._clock():
                return
            self._remove(digest)

    def _remove(self, digest: bytes) -> None:
        owner = self._suspects.pop(digest).owner
        self._owners[owner] -= 1
        if not self._owners[owner]:
            del self._owners[owner]
