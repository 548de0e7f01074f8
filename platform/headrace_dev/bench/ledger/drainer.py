"""A process that drains, as a worker does: `python -m headrace_dev.bench.ledger.drainer`.

It says `ready`, starts at a line on its standard input, ends when the stream is empty, and prints one object: records
written and CPU seconds used.
"""

import json
import os
import sys
import time

import django
import redis


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "headrace.settings")
    django.setup()
    from django.conf import settings  # noqa: PLC0415  there are none before

    from billing.drain import drain_all  # noqa: PLC0415

    with redis.Redis.from_url(settings.REDIS_URL) as client:
        print("ready", flush=True)
        sys.stdin.readline()
        before = time.process_time()
        written = drain_all(client, seconds=3600)
        print(json.dumps({"written": written, "cpu": time.process_time() - before}), flush=True)


if __name__ == "__main__":
    main()
