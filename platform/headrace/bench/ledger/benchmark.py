"""The benchmark: its options, its parts, its report."""

from statistics import median
from typing import Any

from django.core.management.base import CommandParser

from headrace.bench.benchmark import Benchmark, Report, Say, Target
from headrace.bench.document import document
from headrace.bench.installation import Installation
from headrace.bench.ledger import draining

DRAIN_TARGET = 5000
_TOLD = ("tenants", "events", "rounds", "processes", "seed")


class Ledger(Benchmark):
    name = "ledger"
    help = "Records a second from Redis to committed Postgres; invoices, usage and cost over a ledger of millions."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenants", type=int, default=500)
        parser.add_argument("--events", type=int, default=60_000, help="in the stream, for each round of the drain")
        parser.add_argument("--rounds", type=int, default=3, help="of the drain; the report gives the median")
        parser.add_argument("--processes", type=int, default=2, help="that drain side by side")
        parser.add_argument("--seed", type=int, default=1)

    def run(self, options: dict[str, Any], say: Say) -> Report:
        said, _ = document(options["tenants"], upstream="http://127.0.0.1:9", model="model")
        installation = Installation(said, durable=True)
        rows: list[dict[str, Any]] = []
        targets: list[Target] = []
        try:
            say(f"setting up Headrace with {options['tenants']} tenants")
            installation.start()
            for drained in self._drain(options, installation, say, targets):
                rows.append(row("drain", drained.records, drained.seconds, drained.rate))
        finally:
            installation.stop()
        notes = [
            "drain: from entries in Valkey (appendfsync always) to committed rows in Postgres (fsync on), records and"
            f" hours in one transaction, by {options['processes']} processes; every round's rows were counted."
        ]
        return Report(self.name, {name: options[name] for name in _TOLD}, rows, targets, notes)

    def _drain(
        self, options: dict[str, Any], installation: Installation, say: Say, targets: list[Target]
    ) -> list[draining.Drained]:
        names = ("tenants", "events", "processes", "rounds", "seed")
        found = draining.measure(installation, say=say, **{name: options[name] for name in names})
        rate = median(drained.rate for drained in found)
        targets.append(Target("records a second, drained", rate, DRAIN_TARGET, is_floor=True))
        return found


def row(what: str, records: int, seconds: float, rate: float | None = None) -> dict[str, Any]:
    return {"what": what, "records": records, "seconds": seconds, "records_per_second": rate}
