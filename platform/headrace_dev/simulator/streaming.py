"""A scripted stream, event by event."""

from collections.abc import Iterator

from headrace_dev.simulator.chunks import DONE, FULL_MESSAGE, Chunks
from headrace_dev.simulator.run import EVENT_STREAM, Run
from headrace_dev.simulator.seen import How
from headrace_dev.simulator.texts import Texts
from headrace_dev.simulator.writing import Writer


class Dropped(Exception):
    """The script wants the connection gone."""


async def wait(run: Run, writer: Writer, until: float | None) -> None:
    while (ping := await run.pause(until)) is not None:
        await writer.start(200, EVENT_STREAM)
        await writer.event(ping)


async def stream(run: Run, writer: Writer) -> How:
    """Send the answer; what it returns becomes the request's `how`. Raises Dropped."""
    script, chunks = run.script, Chunks(run.rid, run.model)
    if script.headers_first or script.headers_only:
        await writer.start(200, EVENT_STREAM)
    await wait(run, writer, None if script.headers_only else run.first_at)
    if run.ending in {"close", "reset"}:
        return ended(run)
    await writer.start(200, EVENT_STREAM)
    if script.queue_full:
        await tail(run, writer, [Chunks.error(FULL_MESSAGE, 503)])
        return "refused"
    await junk(run, writer)
    if script.role_chunk:
        for index in range(run.n):
            await writer.event(chunks.role(index))
    done = await generate(run, writer, chunks)
    if run.ending in {"close", "reset"}:
        return ended(run)
    if not done and not run.ending:  # the script's error event
        message = "The engine failed. " + "x" * script.pad
        await tail(run, writer, [Chunks.error(message, 500, "InternalServerError")])
        return "failed"
    reason = "abort" if run.ending else run.finish_reason
    await tail(run, writer, last_events(run, chunks, reason))
    return ended(run) if run.ending else "finished"


def ended(run: Run) -> How:
    if run.ending == "abort":
        return "aborted"
    return "closed_by_client" if run.ending == "close" else "reset"


async def junk(run: Run, writer: Writer) -> None:
    for line in run.script.junk:
        await writer.event(line.encode() + b"\n\n")


def steps(run: Run, chunks: Chunks) -> Iterator[tuple[int, list[bytes]]]:
    """Each content event of the answer: how many tokens it brings, and its bytes for each choice."""
    script, texts = run.script, Texts(run.script)
    sent = 0
    while sent < run.tokens:
        stop = min(sent + script.tokens_per_event, run.tokens)
        usage = run.usage.running(stop, min(stop, script.reasoning))
        render = chunks.reasoning if sent < script.reasoning else chunks.content
        text = texts.json(sent, stop)
        yield stop - sent, [render(index, text, usage) for index in range(run.n)]
        sent = stop
    most = sent + run.tool_tokens
    for number, call in enumerate(run.tools):
        for piece, arguments in enumerate(call.arguments):
            tokens = int(arguments is not None)
            if sent + tokens > most:
                return
            sent += tokens
            usage = run.usage.running(sent, min(sent, script.reasoning))
            yield tokens, [chunks.tool(index, number, call, piece, usage) for index in range(run.n)]


async def generate(run: Run, writer: Writer, chunks: Chunks) -> bool:
    """Send the content events. False where the script breaks off with an error event; else see `run.ending`."""
    script, entry = run.script, run.entry
    step = 0
    events = steps(run, chunks)
    while not run.ending:
        if script.stall_after == step:
            await wait(run, writer, None)
            break
        if script.drop_after == step:
            raise Dropped
        if script.error_event_after == step:
            return False
        await wait(run, writer, run.due(step))
        if run.ending or (event := next(events, None)) is None:
            break
        tokens, texts = event
        entry.tokens_generated += tokens * run.n
        if not run.gone:
            for text in texts:
                await writer.event(text)
            entry.tokens_sent += 0 if run.gone else tokens * run.n
        step += 1
        if script.junk_every and step % script.junk_every == 0:
            await junk(run, writer)
    return True


def last_events(run: Run, chunks: Chunks, reason: str | None) -> list[bytes]:
    generated = run.entry.tokens_generated
    each = generated // run.n
    reasoning = min(each, run.script.reasoning)
    events = []
    if reason is not None:
        events += [chunks.finish(index, reason, run.usage.finish(each, reasoning)) for index in range(run.n)]
    figures = run.usage.figures(generated, reasoning * run.n)
    return events + [chunks.usage(figures)] * run.usage.final_chunks


async def tail(run: Run, writer: Writer, events: list[bytes]) -> None:
    if run.script.done:
        events = [*events, DONE]
    if events and not run.script.end_newline:
        events = [*events[:-1], events[-1].rstrip(b"\n")]
    for event in events:
        await writer.event(event)
    if run.script.linger_ms:
        await writer.flush()
        await wait(run, writer, run.now() + run.script.linger_ms / 1000)
    await writer.finish()
