"""What a trace file says."""

from pathlib import Path

import msgspec

from headrace_dev.simulator.fleet.profile import Profile

ROUTING = Path(__file__).parent / "routing.yaml"


class SLO(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds to the first token, and of each further one on average: a request within both is goodput."""

    ttft: float
    tpot: float


class Size(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A lognormal, cut at both ends. `cv`: deviation / mean."""

    mean: float
    cv: float
    least: float = 0
    most: float = 1e9


class Chat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rate: float
    system: tuple[int, int]
    turns: float
    think: Size
    question: Size
    answer: Size


class Shared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    prefix: int
    rate: float
    hot_rate: float
    hot: tuple[float, float]
    question: Size
    answer: Size


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rate: float
    length: Size
    questions: float
    think: Size
    question: Size
    answer: Size


class Batch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    every: float
    size: int
    instructions: int
    text: Size
    answer: Size


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    seconds: float
    warmup: float
    replicas: int
    scale: float
    replica: Profile
    tenants: int
    skew: float
    max_tokens: int
    slos: dict[str, SLO]
    chat: Chat
    shared: Shared
    document: Document
    batch: Batch


def load(path: Path = ROUTING) -> Shape:
    """Raises msgspec.ValidationError."""
    return msgspec.yaml.decode(path.read_bytes(), type=Shape)


def at_load(shape: Shape, factor: float) -> Shape:
    """The same trace with `factor` times the arrivals: more conversations and documents, not longer ones."""
    replace = msgspec.structs.replace
    return replace(
        shape,
        chat=replace(shape.chat, rate=shape.chat.rate * factor),
        document=replace(shape.document, rate=shape.document.rate * factor),
        shared=replace(shape.shared, rate=shape.shared.rate * factor, hot_rate=shape.shared.hot_rate * factor),
        batch=replace(shape.batch, every=shape.batch.every / factor),
    )
