"""The benchmarks by name."""

from headrace.bench.benchmark import Benchmark
from headrace.bench.fairness.benchmark import Fairness
from headrace.bench.lag.benchmark import Lag
from headrace.bench.ledger.benchmark import Ledger
from headrace.bench.ledger.check_benchmark import LedgerCheck
from headrace.bench.ledger.seeding.benchmark import Seed
from headrace.bench.overhead import Overhead
from headrace.bench.placing import PlacingCost
from headrace.bench.queries_of_death import QueriesOfDeath
from headrace.bench.routing.benchmark import Routing
from headrace.bench.simulator.benchmark import Simulator
from headrace.bench.store.memory import Memory
from headrace.bench.store.rebuild import Rebuild
from headrace.bench.tenants.keys import Keys
from headrace.bench.tenants.neighbours import Neighbours

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
