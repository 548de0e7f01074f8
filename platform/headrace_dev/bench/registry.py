"""The benchmarks by name."""

from headrace_dev.bench.benchmark import Benchmark
from headrace_dev.bench.fairness.benchmark import Fairness
from headrace_dev.bench.lag.benchmark import Lag
from headrace_dev.bench.ledger.benchmark import Ledger
from headrace_dev.bench.ledger.check_benchmark import LedgerCheck
from headrace_dev.bench.ledger.seeding.benchmark import Seed
from headrace_dev.bench.overhead import Overhead
from headrace_dev.bench.placing import PlacingCost
from headrace_dev.bench.queries_of_death import QueriesOfDeath
from headrace_dev.bench.routing.benchmark import Routing
from headrace_dev.bench.simulator.benchmark import Simulator
from headrace_dev.bench.store.memory import Memory
from headrace_dev.bench.store.rebuild import Rebuild
from headrace_dev.bench.tenants.keys import Keys
from headrace_dev.bench.tenants.neighbours import Neighbours

BENCHMARKS: dict[str, Benchmark] = {
    benchmark.name: benchmark
    for benchmark in (
        Overhead(),
        PlacingCost(),
        Routing(),
        Fairness(),
        Lag(),
        Simulator(),
        Ledger(),
        LedgerCheck(),
        Seed(),
        QueriesOfDeath(),
        Rebuild(),
        Memory(),
        Keys(),
        Neighbours(),
    )
}
