"""`bench seed`: the seeding by itself, into the installation that the command is run for."""

from typing import Any

from django.core.management.base import CommandParser

from headrace_dev.bench.benchmark import Benchmark, Report, Say
from headrace_dev.bench.ledger.seeding.seeding import seed
from headrace_dev.bench.ledger.seeding.size import until_now

SIZES = {"tenants": 500, "keys": 5000, "records": 20_000_000, "seed": 1}


def add_sizes(parser: CommandParser) -> None:
    parser.add_argument("--tenants", type=int, default=SIZES["tenants"])
    parser.add_argument("--keys", type=int, default=SIZES["keys"], help="of all tenants together")
    parser.add_argument("--records", type=int, default=SIZES["records"], help="over last month and this one")
    parser.add_argument("--seed", type=int, default=SIZES["seed"])


class Seed(Benchmark):
    name = "seed"
    help = "Fills this installation, which has to be empty, with tenants, keys, prices, usage records and hours."

    def add_arguments(self, parser: CommandParser) -> None:
        add_sizes(parser)

    def run(self, options: dict[str, Any], say: Say) -> Report:
        sizes = {name: options[name] for name in SIZES}
        seeded = seed(until_now(**sizes), say)
        rows = [{"what": what, "rows": count, "seconds": seconds} for what, count, seconds in seeded.steps]
        notes = ["The tenants' owners (owner@tenant-0.example) have no password; operators look at their portals."]
        return Report(self.name, sizes, rows, [], notes)
