"""`manage.py bench NAME [--json]`: measures on parts of its own, which it starts and ends."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from headrace.stack.errors import StackError
from headrace_dev.bench.benchmark import BenchmarkFailed
from headrace_dev.bench.registry import BENCHMARKS


class Command(BaseCommand):
    help = "Runs a benchmark on parts of its own: a database, Valkey, a scripted upstream and the servers compared."
    requires_system_checks = []  # it needs no database but those it starts

    def add_arguments(self, parser: CommandParser) -> None:
        benchmarks = parser.add_subparsers(dest="benchmark", required=True, metavar="NAME")
        for benchmark in BENCHMARKS.values():
            own = benchmarks.add_parser(benchmark.name, help=benchmark.help, description=benchmark.help)
            own.add_argument("--json", action="store_true", help="one object: parameters, rows and verdict")
            benchmark.add_arguments(own)

    def handle(self, *args: Any, **options: Any) -> None:
        def say(line: str) -> None:
            print(line, file=sys.stderr, flush=True)

        try:
            report = BENCHMARKS[options["benchmark"]].run(options, say)
        except (BenchmarkFailed, StackError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(report.as_json() if options["json"] else report.as_text())
