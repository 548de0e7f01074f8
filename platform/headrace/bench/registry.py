"""The benchmarks by name."""

from headrace.bench.benchmark import Benchmark
from headrace.bench.ledger.benchmark import Ledger
from headrace.bench.overhead import Overhead
from headrace.bench.placing import PlacingCost

BENCHMARKS: dict[str, Benchmark] = {benchmark.name: benchmark for benchmark in (Overhead(), PlacingCost(), Ledger())}
