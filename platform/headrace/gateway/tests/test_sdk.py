"""The official SDK, unchanged: what it sends is taken, what comes back it understands, errors are its typed ones."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient, DefaultHttpxClient, OpenAI
from openai.types.chat import ChatCompletionMessageParam

from headrace.gateway.tests.calling import Place, record
from headrace_dev.testing.upstream import ScriptedUpstream, prompt

HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hello"}]


def says(**script: Any) -> list[ChatCompletionMessageParam]:
    return [{"role": "user", "content": prompt(**script)}]


@pytest.fixture(scope="module")
def client(place: Place) -> Iterator[OpenAI]:
    with DefaultHttpxClient(trust_env=False) as http:
        yield OpenAI(api_key=place.world.secret, base_url=f"{place.web.url}/v1", http_client=http, max_retries=0)


@pytest.fixture
def model(place: Place) -> str:
    place.upstream.reset()
    return place.world.model


def test_it_answers_whole(place: Place, client: OpenAI, model: str) -> None:
    answer = client.chat.completions.create(model=model, messages=HELLO, n=2, seed=7, stop=["END"], user="alice")
    assert [choice.message.content for choice in answer.choices] == ["tok0 tok1 tok2 tok3 tok4 "] * 2
    assert (answer.object, answer.model, answer.choices[0].finish_reason) == ("chat.completion", model, "stop")
    assert answer.id == f"chatcmpl-{answer._request_id}"
    found = record(place.web, str(answer._request_id))
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (found["input_tokens"], 10)
    assert answer.usage.total_tokens == found["input_tokens"] + found["output_tokens"]


def test_it_streams(client: OpenAI, model: str) -> None:
    with client.chat.completions.create(model=model, messages=HELLO, stream=True) as stream:
        chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "tok0 tok1 tok2 tok3 tok4 "
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks[-2:]] == [None, "stop"]
    assert {chunk.usage for chunk in chunks} == {None}


def test_it_streams_usage_where_it_is_asked_for(client: OpenAI, model: str) -> None:
    options: Any = {"include_usage": True}
    with client.chat.completions.create(model=model, messages=HELLO, stream=True, stream_options=options) as stream:
        *chunks, last = stream
    assert all(chunk.usage is None for chunk in chunks)
    assert (last.choices, last.usage and last.usage.completion_tokens) == ([], 5)


def test_it_understands_a_stream_between_keep_alives(client: OpenAI, model: str) -> None:
    junk = [": PROCESSING", "data: : keepalive", "data:", "event: ping"]
    with client.chat.completions.create(model=model, messages=says(junk=junk, junk_every=1), stream=True) as stream:
        assert len(list(stream)) == 7


def test_it_streams_tool_calls(client: OpenAI, model: str) -> None:
    calls = [
        {"name": "weather", "arguments": [None, None, '{"city":', ' "東京"}']},
        {"name": "time", "arguments": ["{}"]},
    ]
    tools: Any = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in ("weather", "time")]
    with client.chat.completions.stream(model=model, messages=says(tool_calls=calls), tools=tools) as stream:
        final = stream.get_final_completion()
    [choice] = final.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.tool_calls is not None
    told = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls]
    assert told == [("weather", '{"city": "東京"}'), ("time", "{}")]
    with client.chat.completions.create(model=model, messages=says(tool_calls=calls), stream=True) as raw:
        deltas = [call for chunk in raw for call in chunk.choices[0].delta.tool_calls or ()]
    assert all(call.function and isinstance(call.function.arguments, str) for call in deltas)


def test_it_takes_its_own_answer_back(client: OpenAI, model: str) -> None:
    calls = [{"name": "weather", "arguments": ['{"city": "Oslo"}']}]
    first = client.chat.completions.create(model=model, messages=says(tool_calls=calls, reasoning=1, tokens=2))
    message = first.choices[0].message
    back: Any = [*HELLO, message.model_dump(), {"role": "tool", "tool_call_id": "call_1", "content": "12"}, *HELLO]
    assert client.chat.completions.create(model=model, messages=back).choices[0].finish_reason == "stop"
    objects: Any = [*HELLO, message, {"role": "tool", "tool_call_id": "call_1", "content": "12"}]
    assert client.chat.completions.create(model=model, messages=objects).choices[0].finish_reason == "stop"


BAD, MISSING, BROKEN = openai.BadRequestError, openai.NotFoundError, openai.InternalServerError
ERRORS: list[tuple[type[openai.APIStatusError], str, str | None, dict[str, Any]]] = [
    (BAD, "invalid_request", "temperature", {"temperature": 3}),
    (BAD, "unsupported_parameter", "rid", {"extra_body": {"rid": "x"}}),
    (BAD, "context_length_exceeded", "max_tokens", {"max_tokens": 10**6}),
    (BAD, "invalid_request", None, {"messages": says(status=400)}),
    (MISSING, "model_not_found", "model", {"model": "none"}),
    (BROKEN, "upstream_error", None, {"messages": says(status=500)}),
    (BROKEN, "no_capacity", None, {"messages": says(queue_full=True), "stream": True}),
]


@pytest.mark.parametrize(("kind", "code", "param", "fields"), ERRORS)
def test_it_raises_the_typed_errors(
    client: OpenAI,
    model: str,
    kind: type[openai.APIStatusError],
    code: str,
    param: str | None,
    fields: dict[str, Any],
) -> None:
    with pytest.raises(kind) as raised:
        client.chat.completions.create(**({"model": model, "messages": HELLO} | fields))
    assert (raised.value.code, raised.value.param) == (code, param)
    assert raised.value.request_id


def test_it_raises_the_typed_errors_of_keys_and_paths(client: OpenAI, model: str) -> None:
    with pytest.raises(openai.AuthenticationError) as refused:
        client.with_options(api_key="sk-none").models.list()
    with pytest.raises(openai.NotFoundError) as missing:
        client.embeddings.create(model=model, input="x")
    assert (refused.value.code, missing.value.code) == ("invalid_api_key", "not_found")


def test_it_raises_an_error_in_the_middle_of_a_stream(client: OpenAI, model: str) -> None:
    with (
        client.chat.completions.create(model=model, messages=says(tokens=9, drop_after=3), stream=True) as stream,
        pytest.raises(openai.APIError) as raised,
    ):
        list(stream)
    assert (raised.value.code, raised.value.type) == ("upstream_disconnected", "server_error")


def test_it_stops_the_engine_when_a_stream_is_closed(place: Place, client: OpenAI, model: str) -> None:
    slow = says(tokens=1000, interval_ms=20)
    raw = client.chat.completions.with_raw_response.create(model=model, messages=slow, stream=True)
    stream = raw.parse()
    for _, _chunk in zip(range(4), stream, strict=False):
        continue
    stream.close()
    place.upstream.wait_until_idle(5)
    found = record(place.web, str(raw.headers["x-request-id"]))
    assert found["status"] == "cancelled"
    assert 3 <= found["output_tokens"] < 500


def test_it_lists_models(place: Place, client: OpenAI, model: str) -> None:
    listed = client.models.list()
    assert model in [each.id for each in listed]
    found = client.models.retrieve(model)
    assert (found.id, found.object, found.owned_by) == (model, "model", "headrace")
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("none")


def test_it_gives_its_headers(place: Place, model: str) -> None:
    _, secret = place.world.add_key(requests_per_minute=60)
    place.wait_known(secret=secret)
    with OpenAI(
        api_key=secret, base_url=f"{place.web.url}/v1", http_client=DefaultHttpxClient(trust_env=False)
    ) as client:
        raw = client.chat.completions.with_raw_response.create(model=model, messages=HELLO)
    assert raw.headers["x-request-id"] == raw.request_id
    assert raw.headers["x-headrace-target"] == place.world.name
    assert raw.headers["x-ratelimit-remaining-requests"] == "59"
    assert raw.parse().choices[0].message.content


def test_it_waits_as_it_is_told_and_asks_again(place: Place, engine: ScriptedUpstream, model: str) -> None:
    """The SDK's own retries, at their default: a full engine once, then a limit."""
    _, secret = place.world.add_key(requests_per_minute=60)
    place.wait_known(secret=secret)
    with OpenAI(
        api_key=secret, base_url=f"{place.web.url}/v1", http_client=DefaultHttpxClient(trust_env=False)
    ) as client:
        engine.scripts({"status": 503, "retry_after": "1"})
        began = time.monotonic()
        assert client.chat.completions.create(model=model, messages=HELLO).usage
        assert 1 <= time.monotonic() - began < 5
        never = client.with_options(max_retries=0)

        def exhaust() -> None:
            for _ in range(200):
                never.chat.completions.create(model=model, messages=HELLO, max_tokens=1)

        with pytest.raises(openai.RateLimitError) as raised:
            exhaust()
        assert raised.value.code == "rate_limit_exceeded"
        assert client.chat.completions.create(model=model, messages=HELLO).usage


async def test_it_serves_the_async_client(place: Place, model: str) -> None:
    url = f"{place.web.url}/v1"
    http = DefaultAsyncHttpxClient(trust_env=False)
    async with AsyncOpenAI(api_key=place.world.secret, base_url=url, http_client=http, max_retries=0) as client:

        async def streamed() -> str:
            stream = await client.chat.completions.create(model=model, messages=HELLO, stream=True)
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

        async def left() -> None:
            stream = await client.chat.completions.create(
                model=model, messages=says(tokens=1000, interval_ms=20), stream=True
            )
            async for _ in stream:
                break
            await stream.close()

        *texts, _, error = await asyncio.gather(
            *(streamed() for _ in range(5)),
            left(),
            client.chat.completions.create(model="none", messages=HELLO),
            return_exceptions=True,
        )
    assert texts == ["tok0 tok1 tok2 tok3 tok4 "] * 5
    assert isinstance(error, openai.NotFoundError)
    place.upstream.wait_until_idle(5)
