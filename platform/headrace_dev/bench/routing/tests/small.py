"""A small trace for tests: three replicas, half a minute."""

import msgspec

from headrace_dev.bench.routing.prepared import Prepared, prepare
from headrace_dev.bench.traces import Shape, at_load, generate, load


def shape(**changed: object) -> Shape:
    full = at_load(load(), 0.4)
    fields: dict[str, object] = {"seconds": 40.0, "warmup": 8.0, "replicas": 3}
    fields["shared"] = msgspec.structs.replace(full.shared, hot=(15.0, 25.0))
    return msgspec.structs.replace(full, **(fields | changed))


def requests(of: Shape, seed: int = 1) -> list[Prepared]:
    return prepare(generate(of, seed))
