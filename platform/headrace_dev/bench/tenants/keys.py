"""`bench keys`: what loading all tenants' keys takes of a web process, most of them revoked long ago."""

import json
from statistics import median
from typing import Any

from django.core.management.base import CommandParser

from headrace_dev.bench.benchmark import Benchmark, Report, Say, Target
from headrace_dev.bench.installation import Installation
from headrace_dev.bench.tenants.filling import fill_keys

_STEP_MS, _SECONDS, _BYTES = 20.0, 15.0, 1024


class Keys(Benchmark):
    name = "keys"
    help = "Seconds, memory and the event loop's longest step while a web process loads the keys of many tenants."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenants", type=int, default=500)
        parser.add_argument("--keys", type=int, default=1000, help="of each tenant")
        parser.add_argument("--revoked", type=float, default=0.9, help="part of them")
        parser.add_argument("--rounds", type=int, default=3, help="the report gives medians")

    def run(self, options: dict[str, Any], say: Say) -> Report:
        sizes = {name: options[name] for name in ("tenants", "keys", "revoked")}
        installation = Installation({})
        try:
            installation.start()
            empty = _load(installation, options["rounds"])
            fill_keys(installation.database_url, **sizes)
            say(f"{sizes['tenants'] * sizes['keys']:,} keys are in the database")
            full = _load(installation, options["rounds"])
        finally:
            installation.stop()
        bytes_each = (full["MiB"] - empty["MiB"]) * 2**20 / max(full["keys"], 1)
        targets = [
            Target("seconds to load", full["seconds"], _SECONDS),
            Target("longest step of the event loop meanwhile, ms of CPU", full["longest step ms"], _STEP_MS),
            Target("bytes of memory a key that may be used", bytes_each, _BYTES),
        ]
        rows = [{"of": "no key"} | empty, {"of": "all keys"} | full]
        return Report(self.name, sizes | {"rounds": options["rounds"]}, rows, targets, [])


def _load(installation: Installation, rounds: int) -> dict[str, Any]:
    found = [json.loads(installation.run("-m", "headrace_dev.bench.tenants.loading")) for _ in range(rounds)]
    return {name: median(one[name] for one in found) for name in found[0]}
