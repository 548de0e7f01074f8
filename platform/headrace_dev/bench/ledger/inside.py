"""A part, in a process of the installation that is measured: `python -m headrace_dev.bench.ledger.inside PART TENANTS`.

It tells its progress on standard error and prints what it found as one object.
"""

import json
import os
import sys

import django

from headrace_core import gc_tuning


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "headrace.settings")
    os.environ.setdefault("HEADRACE_DB_POOLED", "1")  # this and its heap are as in a web process
    django.setup()
    from headrace_dev.bench.benchmark import BenchmarkFailed  # noqa: PLC0415  there are no settings before
    from headrace_dev.bench.ledger import checking, closing, pages, queries, rollups  # noqa: PLC0415

    gc_tuning.freeze_loaded()
    parts = {"rollups": rollups, "closing": closing, "queries": queries, "pages": pages, "checking": checking}
    name, tenants = sys.argv[1:]
    try:
        found = parts[name].measure(int(tenants), lambda line: print(line, file=sys.stderr, flush=True))
    except BenchmarkFailed as error:
        sys.exit(str(error))
    print(json.dumps(found.plain()))


if __name__ == "__main__":
    main()
