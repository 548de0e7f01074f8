"""What sizing refuses, and how it says so.

SizingError
|-- UnknownName        a model or accelerator that is not in the tables; carries near names
|-- BadValue           zero, negative, absurd or contradictory input; carries the field
|-- UnknownArchitecture a config.json this arithmetic cannot read honestly
|-- DoesNotFit         the weights leave no room; carries by how much and what would make it fit
`-- OutOfReach         no number of replicas meets a latency target; carries the best that can be had
"""

from dataclasses import dataclass


class SizingError(Exception):
    """Base of all refusals; `code` is stable for machines, str() is for people."""

    code = "sizing"


@dataclass
class UnknownName(SizingError):
    code = "unknown_name"
    kind: str
    name: str
    near: tuple[str, ...]
    known: tuple[str, ...]

    def __str__(self) -> str:
        hint = f"did you mean {', '.join(self.near)}?" if self.near else f"known: {', '.join(self.known)}"
        return f"unknown {self.kind} {self.name!r}; {hint}"


@dataclass
class BadValue(SizingError):
    code = "bad_value"
    field: str
    value: object
    why: str

    def __str__(self) -> str:
        return f"{self.field} = {self.value}: {self.why}"


@dataclass
class UnknownArchitecture(SizingError):
    code = "unknown_architecture"
    why: str

    def __str__(self) -> str:
        return self.why


@dataclass
class DoesNotFit(SizingError):
    """`short_bytes` is per GPU: how much more memory one sequence would need. `remedies` each make it fit."""

    code = "does_not_fit"
    model: str
    setting: str
    need_bytes: float
    have_bytes: float
    remedies: tuple[str, ...]

    @property
    def short_bytes(self) -> float:
        return self.need_bytes - self.have_bytes

    def __str__(self) -> str:
        gib = 2**30
        cure = f"; it would fit with {', or '.join(self.remedies)}" if self.remedies else "; nothing tried here fits"
        return (
            f"{self.model} does not fit {self.setting}: a GPU needs {self.need_bytes / gib:.1f} GiB and offers "
            f"{self.have_bytes / gib:.1f} GiB, {self.short_bytes / gib:.1f} GiB short{cure}"
        )


@dataclass
class OutOfReach(SizingError):
    """A target that one request alone on one replica already misses, so more replicas cannot help."""

    code = "out_of_reach"
    target: str
    wanted: float
    best: float
    remedies: tuple[str, ...]

    def __str__(self) -> str:
        cure = f"; try {', or '.join(self.remedies)}" if self.remedies else ""
        return (
            f"{self.target} of {self.wanted * 1000:.4g} ms cannot be met by adding replicas: an idle replica already "
            f"takes {self.best * 1000:.4g} ms{cure}"
        )
