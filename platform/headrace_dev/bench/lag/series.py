"""`python -m headrace_dev.bench.lag.series NUMBER`: leave metrics of so many series, as a process that served would."""

import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "headrace.settings")

import django

django.setup()

from headrace.gateway.process import metrics  # noqa: E402


def main(number: int) -> None:
    for place in range(number):
        metrics.REQUESTS.labels(f"tenant-{place // 10}", f"model-{place % 10}", "pool", "ok").inc(place)


if __name__ == "__main__":
    main(int(sys.argv[1]))
