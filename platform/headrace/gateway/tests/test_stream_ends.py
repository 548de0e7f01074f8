"""An upstream that fails once every choice has its finish_reason: the answer is whole, whatever its end lacks."""

import json
import socketserver
from collections.abc import Iterator
from contextlib import suppress
from threading import Thread
from typing import Any

import pytest

from headrace.gateway.tests.calling import Place
from headrace_dev.testing.upstream import ScriptedUpstream

USAGE = {"prompt_tokens": 9, "completion_tokens": 1}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def event(delta: dict[str, Any], reason: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return f"data: {json.dumps({'choices': [choice], **more})}\n\n".encode()


class _Breaking(socketserver.StreamRequestHandler):
    """Answers a chat, its last event half, and breaks off within a chunk. With n = 2 a choice is left unfinished."""

    def handle(self) -> None:
        with suppress(ConnectionError):
            length = 0
            while line := self.rfile.readline().strip().lower():
                if line.startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
            self.rfile.read(length)
            body = event({"content": "one"}, usage=USAGE) + event({}, "stop") + b'data: {"choices":[{"ind'
            self.wfile.write(HEAD + b"%x\r\n" % (len(body) + 100) + body)


@pytest.fixture(scope="module")
def model(place: Place) -> Iterator[str]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Breaking) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        name = place.add_model(url=f"http://127.0.0.1:{server.server_address[1]}")
        place.wait_known(name)
        yield name
        server.shutdown()
        thread.join()


def test_it_is_whole_though_the_upstream_breaks_off(place: Place, model: str) -> None:
    answer = place.chat(model=model, stream=True, stream_options={"include_usage": True})
    assert (answer.is_done, answer.text) == (True, "one"), answer.raw
    assert answer.usage is not None
    assert answer.usage["completion_tokens"] == 1
    assert (answer.record["status"], answer.record["finish_reason"]) == ("ok", "stop")


def test_it_is_not_while_a_choice_is_unfinished(place: Place, model: str) -> None:
    answer = place.chat(model=model, stream=True, n=2)
    assert (answer.is_done, answer.error["code"]) == (False, "upstream_disconnected")
    assert answer.record["status"] == "error"


def test_it_is_whole_though_the_upstream_keeps_its_end_back(place: Place, engine: ScriptedUpstream) -> None:
    """Neither [DONE] nor the end of the connection comes, only comments."""
    answer = place.scripted(fields={"stream": True}, tokens=3, done=False, linger_ms=60_000)
    assert (answer.is_done, answer.text) == (True, "tok0 tok1 tok2 ")
    assert (answer.record["status"], answer.record["output_tokens"]) == ("ok", 3)
    engine.wait_until_idle()
