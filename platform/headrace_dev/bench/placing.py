"""`bench placing`: what choosing a replica costs on the request path, in this process, by step and size of prompt."""

import random
import statistics
import time
from itertools import pairwise
from typing import Any

from django.core.management.base import CommandParser

from engines.protocols import PROTOCOLS, Upstream
from headrace.gateway.dialects.chat_completions.request import parse
from headrace.gateway.operations.chat import ChatOperation
from headrace_dev.bench.benchmark import Benchmark, Report, Say, Target
from routing.catalog import Replica, Route
from routing.catalog import Target as Pool
from routing.held_tokens import HeldTokens
from routing.policies import DEFAULT
from routing.prefix_index import Hasher, PrefixIndex
from routing.selection import PlacementRequest, Selection

_SIZES = {"1 KiB": 2**10, "16 KiB": 2**14, "128 KiB": 2**17, "1 MiB": 2**20}
_LIMIT_US = 1000.0


class PlacingCost(Benchmark):
    name = "placing"
    help = "Microseconds a request spends on hashing its prompt, ranking the replicas and feeding the prefix index."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--replicas", type=int, default=8)
        parser.add_argument("--rounds", type=int, default=200, help="requests of each size")

    def run(self, options: dict[str, Any], say: Say) -> Report:
        rows = [_measure(name, size, options["replicas"], options["rounds"]) for name, size in _SIZES.items()]
        typical = next(row for row in rows if row["prompt"] == "16 KiB")
        return Report(
            self.name,
            {"replicas": options["replicas"], "rounds": options["rounds"]},
            rows,
            [Target("16 KiB (about 4,000 tokens), all steps, median microseconds", typical["total us"], _LIMIT_US)],
            ["Medians in microseconds. `feed` is what follows the choice: sent, and reported at the end."],
        )


def _chat(size: int, seed: int) -> ChatOperation:
    words = random.Random(seed).randbytes(size // 2).hex()
    half = size // 2
    messages = f'[{{"role":"system","content":"{words[:half]}"}},{{"role":"user","content":"{words[half:]}"}}]'
    return parse(f'{{"model":"m","messages":{messages}}}'.encode(), [])


def _measure(name: str, size: int, replicas: int, rounds: int) -> dict[str, Any]:
    upstream = Upstream(PROTOCOLS["sglang"], "http://127.0.0.1:1", "m")
    pool = Pool("pool", tuple(Replica(f"pool/r{number}", upstream) for number in range(replicas)))
    route = Route("m", 0, 10**6, 500, "tenant", "refuse", DEFAULT, 5, 60, 60, 600, (pool,))
    hasher, index = Hasher("secret"), PrefixIndex(tokens=262_144, most=200_000)
    selection, tokens = Selection(index, HeldTokens(str)), size // 4
    blocks, spent = 0, []
    for turn in range(rounds):
        chat = _chat(size, turn // 4)  # each prompt four times
        marks = [time.perf_counter()]
        text = chat.prompt_text()
        marks.append(time.perf_counter())
        chain = hasher.chain(text, "acme")
        marks.append(time.perf_counter())
        choice = selection.choices(route, PlacementRequest(tokens, 200, chain))[0]
        marks.append(time.perf_counter())
        sent = index.sent(choice.replica.name, chain, tokens, turn)
        index.reported(sent, tokens, sent.predicted, turn)
        marks.append(time.perf_counter())
        blocks = len(chain.hashes)
        spent.append([(end - start) * 1e6 for start, end in pairwise(marks)])
    medians = [round(statistics.median(times), 1) for times in zip(*spent, strict=True)]
    steps = dict(zip(("text us", "hash us", "rank us", "feed us"), medians, strict=True))
    return {"prompt": name, "blocks": blocks, **steps, "total us": round(sum(medians), 1)}
