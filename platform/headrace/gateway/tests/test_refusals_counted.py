"""What a web process refuses before admission is counted for its key, beside the answer."""

import time
from collections import Counter
from typing import Any

import redis

from billing.rejections.counting import BATCHES, PREFIX
from headrace.gateway.tests.calling import Place


def test_it_counts_what_it_refuses_by_key_and_code(place: Place, valkey: "redis.Redis") -> None:
    key, secret = place.world.add_key(None, requests_per_minute=1)
    place.wait_known(secret=secret)
    assert place.chat(secret=secret).status == 200
    for _ in range(3):
        assert place.chat(secret=secret).error["code"] == "rate_limit_exceeded"
    assert place.chat(secret=secret, model="nobody's").error["code"] == "model_not_found"
    assert place.chat(secret="sk-hr-unknown").status == 401
    wanted = {"rate_limit_exceeded": 3, "model_not_found": 1}
    deadline = time.monotonic() + 10
    while (found := counted(valkey, key.public_id)) != wanted and time.monotonic() < deadline:
        time.sleep(0.1)
    assert found == wanted


def counted(valkey: "redis.Redis", key: str) -> dict[str, int]:
    found: Counter[str] = Counter()
    name: Any
    field: Any
    for name in valkey.smembers(BATCHES):
        for field, number in valkey.hgetall(PREFIX + name.decode()).items():
            _, _, whose, code, _ = field.decode().split(" ")
            if whose == key:
                found[code] += int(number)
    return dict(found)
