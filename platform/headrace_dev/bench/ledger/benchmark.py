"""The benchmark: its options, its parts, its report."""

from statistics import median
from typing import Any

from django.core.management.base import CommandParser

from headrace_dev.bench.benchmark import Benchmark, Report, Say, Target
from headrace_dev.bench.document import document
from headrace_dev.bench.installation import Installation
from headrace_dev.bench.ledger import draining
from headrace_dev.bench.ledger.part import Found, row
from headrace_dev.bench.ledger.seeding.benchmark import SIZES, add_sizes

DRAIN_TARGET = 5000
DRAIN = "drain"
INSIDE = ("rollups", "closing", "queries", "pages")  # parts that ask a seeded ledger, in this order; then the drain
_NEEDS = {"pages": "closing"}  # whose invoices they show
_TOLD = (*SIZES, "events", "rounds", "processes")


class Ledger(Benchmark):
    name = "ledger"
    help = "A ledger of millions of records: its rollups, closing, cost, usage and every page; and how fast it drains."

    def add_arguments(self, parser: CommandParser) -> None:
        add_sizes(parser)
        parser.add_argument("--events", type=int, default=60_000, help="in the stream, for each round of the drain")
        parser.add_argument("--rounds", type=int, default=3, help="of the drain; the report gives the median")
        parser.add_argument("--processes", type=int, default=2, help="that drain side by side")
        parser.add_argument(
            "--only", nargs="+", choices=[*INSIDE, DRAIN], help="these parts; drain alone seeds nothing"
        )

    def run(self, options: dict[str, Any], say: Say) -> Report:
        parts = options["only"] or [*INSIDE, DRAIN]
        inside = [name for name in INSIDE if name in parts or name in {_NEEDS.get(part) for part in parts}]
        report = Report(self.name, {name: options[name] for name in _TOLD} | {"parts": parts}, [], [])
        said, _ = document(0 if inside else options["tenants"], upstream="http://127.0.0.1:9", model="model")
        installation = Installation(said, durable=True)
        try:
            say("setting up Headrace")
            installation.start()
            if inside:
                _add(report, _seed(installation, options))
            for name in inside:
                _add(report, _ask(installation, name, options["tenants"]))
            if DRAIN in parts:
                _add(report, self._drain(options, installation, say))
        finally:
            installation.stop()
        return report

    def _drain(self, options: dict[str, Any], installation: Installation, say: Say) -> Found:
        names = ("tenants", "events", "processes", "rounds", "seed")
        drained = draining.measure(installation, say=say, **{name: options[name] for name in names})
        rate = median(one.rate for one in drained)
        return Found(
            [row("drain", count=one.records, seconds=one.seconds) for one in drained],
            [Target("records a second, drained", rate, DRAIN_TARGET, is_floor=True)],
            [
                "drain: from entries in Valkey (appendfsync always) to committed rows in Postgres (fsync on), records,"
                " hours and days in one transaction, by"
                f" {options['processes']} processes; every round's rows were counted."
            ],
        )


def _seed(installation: Installation, options: dict[str, Any]) -> Found:
    sizes = [f"--{name}={options[name]}" for name in SIZES]
    said = installation.tell("manage.py", "bench", "seed", "--json", *sizes)
    return Found([row(f"seeding {one['what']}", count=one["rows"], seconds=one["seconds"]) for one in said["rows"]])


def _ask(installation: Installation, name: str, tenants: int) -> Found:
    return Found.read(installation.tell("-m", "headrace_dev.bench.ledger.inside", name, str(tenants)))


def _add(report: Report, found: Found) -> None:
    report.rows += found.rows
    report.targets += found.targets
    report.notes += found.notes
