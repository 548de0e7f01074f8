"""`python -m headrace_dev.bench.tenants.loading`: load the configuration as a web process does; what it took, as JSON.

Seconds, the longest that the event loop computed in one go (ms of CPU), MiB that the process grew by, keys in memory.
"""

import asyncio
import gc
import json
import os
import time
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "headrace.settings")

import django

django.setup()

from django.conf import settings  # noqa: E402

from headrace.gateway.process.snapshot import Snapshot  # noqa: E402
from headrace_core import gc_tuning  # noqa: E402

_PAUSE = 0.001
_PAGE = os.sysconf("SC_PAGE_SIZE")


async def main() -> dict[str, float]:
    snapshot = Snapshot(os.environ["DATABASE_URL"])
    gc_tuning.freeze_loaded()  # as a web process does
    before, began = _resident(), time.perf_counter()
    following = asyncio.create_task(snapshot.follow())
    longest, ready = 0.0, asyncio.create_task(snapshot.ready.wait())
    while not ready.done():
        asked = time.thread_time()
        await asyncio.sleep(_PAUSE)
        longest = max(longest, time.thread_time() - asked)
    seconds = time.perf_counter() - began
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    gc.collect()
    grown = (_resident() - before) / 2**20
    return {"keys": len(snapshot.keys), "seconds": seconds, "longest step ms": longest * 1000, "MiB": grown}


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


if __name__ == "__main__":
    assert settings.configured
    print(json.dumps(asyncio.run(main())))
