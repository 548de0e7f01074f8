"""The requests of a trace, drawn from its shape by a seed: the same seed, the same requests, to the byte.

Times are fixed beforehand: a turn comes when it is due, whatever became of the one before (an open loop, so a slow
router cannot slow its own load down). Its text holds the answers that simulated replicas give to the turns before it.
"""

import random
from collections.abc import Iterator

import msgspec

from headrace_dev.bench.traces.draws import arrivals, draw, geometric, text, whole
from headrace_dev.bench.traces.shape import Shape, Size
from headrace_dev.simulator.fleet import prompt

Message = dict[str, str]


class Asked(msgspec.Struct, frozen=True):
    """One request, due at `at` simulated seconds. `is_shared`: it goes to the route whose tenants share a cache."""

    number: int
    at: float
    kind: str
    tenant: int
    messages: list[Message]
    output: int

    @property
    def is_shared(self) -> bool:
        return self.kind == "shared"


class Trace(msgspec.Struct, frozen=True):
    shape: Shape
    seed: int
    requests: list[Asked]  # in order of time


def generate(shape: Shape, seed: int) -> Trace:
    # One source for each part, so that a change to one leaves the others' draws alone.
    parts = (chats, shared, documents, batches)
    drawn = [asked for number, part in enumerate(parts) for asked in part(shape, random.Random(f"{seed}/{number}"))]
    drawn = [asked for asked in drawn if asked.at < shape.seconds]
    drawn.sort(key=lambda asked: asked.at)
    return Trace(shape, seed, [msgspec.structs.replace(asked, number=n) for n, asked in enumerate(drawn)])


def tenant_of(shape: Shape, source: random.Random) -> int:
    weights = [1 / (n + 1) ** shape.skew for n in range(shape.tenants)]
    return source.choices(range(shape.tenants), weights)[0]


def question(source: random.Random, size: Size, output: int) -> Message:
    return {"role": "user", "content": text(source, whole(source, size)) + prompt.told(output)}


def talk(
    shape: Shape,
    source: random.Random,
    *,
    kind: str,
    tenant: int,
    begin: float,
    head: list[Message],
    turns: int,
    think: Size,
    asked: Size,
    said: Size,
) -> Iterator[Asked]:
    """A conversation after `head`. Between turns: the answer at 40 ms a token, and time to think."""
    messages, due = head, begin
    for _ in range(turns):
        if due >= shape.seconds:
            return
        output = whole(source, said)
        messages = [*messages, question(source, asked, output)]
        yield Asked(0, due, kind, tenant, messages, output)
        answer = prompt.answer(prompt.rendered(messages), output)
        messages = [*messages, {"role": "assistant", "content": answer}]
        due += 0.5 + output * 0.04 + draw(source, think)


def chats(shape: Shape, source: random.Random) -> Iterator[Asked]:
    chat = shape.chat
    systems = [text(source, source.randint(*chat.system)) for _ in range(shape.tenants)]
    for begin in arrivals(source, chat.rate, 0, shape.seconds):
        tenant = tenant_of(shape, source)
        yield from talk(
            shape,
            source,
            kind="chat",
            tenant=tenant,
            begin=begin,
            head=[{"role": "system", "content": systems[tenant]}],
            turns=geometric(source, chat.turns, 15),
            think=chat.think,
            asked=chat.question,
            said=chat.answer,
        )


def shared(shape: Shape, source: random.Random) -> Iterator[Asked]:
    told = shape.shared
    head = {"role": "system", "content": text(source, told.prefix)}
    due = arrivals(source, told.rate, 0, shape.seconds) + arrivals(source, told.hot_rate, *told.hot)
    for begin in due:
        tenant, output = tenant_of(shape, source), whole(source, told.answer)
        yield Asked(0, begin, "shared", tenant, [head, question(source, told.question, output)], output)


def documents(shape: Shape, source: random.Random) -> Iterator[Asked]:
    told = shape.document
    for begin in arrivals(source, told.rate, 0, shape.seconds):
        tenant, content = tenant_of(shape, source), text(source, whole(source, told.length))
        yield from talk(
            shape,
            source,
            kind="document",
            tenant=tenant,
            begin=begin,
            head=[{"role": "system", "content": content}],
            turns=geometric(source, told.questions, 12),
            think=told.think,
            asked=told.question,
            said=told.answer,
        )


def batches(shape: Shape, source: random.Random) -> Iterator[Asked]:
    told = shape.batch
    due = source.uniform(0, told.every)
    while due < shape.seconds:
        tenant = tenant_of(shape, source)
        instructions = text(random.Random(f"batch {tenant}"), told.instructions)
        head = {"role": "system", "content": instructions}
        for number in range(told.size):
            output = whole(source, told.answer)
            yield Asked(0, due + number * 0.02, "batch", tenant, [head, question(source, told.text, output)], output)
        due += told.every
