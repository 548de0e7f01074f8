"""What the meters should do, in plain Python: the model that test_against_model.py compares the scripts with."""

from dataclasses import dataclass, field

UNIT = 60_000  # a bucket's debt is counted in 1/60000 of its unit


@dataclass
class Bucket:
    """A token bucket as its debt at a time (ms of Redis's clock)."""

    debt: int = 0
    at: int = 0

    def debt_at(self, now: int, limit: int) -> int:
        return max(0, self.debt - max(0, now - self.at) * limit)

    def add(self, amount: int, now: int, limit: int) -> None:
        self.debt, self.at = max(0, self.debt_at(now, limit) + amount * UNIT), now


@dataclass
class Hold:
    """What one request took: limits as they were when it was admitted. room: of the replica it went to, 0 before."""

    limit: int
    most: int
    amount: int
    is_expired: bool = False
    room: int = 0
    steps: int = 0


@dataclass
class Model:
    """One key's bucket (output tokens) and gauge (concurrency), and the requests that were admitted."""

    bucket: Bucket = field(default_factory=Bucket)
    living: dict[str, Hold] = field(default_factory=dict)
    reaped: dict[str, Hold] = field(default_factory=dict)  # settled by the reaper; their own word is still to come
    ended: set[str] = field(default_factory=set)
    lost: dict[str, Hold] = field(default_factory=dict)  # admitted, and forgotten by Redis
    events: int = 0

    @property
    def running(self) -> int:
        return len(self.living)

    def room_taken(self, room: int) -> int:
        """How many requests hold that room."""
        return sum(hold.room == room for hold in self.living.values())

    def verdicts(self, amount: int, limit: int, most: int, began: int, ended: int) -> set[str]:
        """What admission may say, decided somewhere between two times."""
        if amount > limit or most < 1:
            return {"too large"}
        if self.running + 1 > most:
            return {"refused"}
        room = limit * UNIT - amount * UNIT
        return {"held" if self.bucket.debt_at(now, limit) <= room else "refused" for now in (began, ended)}
