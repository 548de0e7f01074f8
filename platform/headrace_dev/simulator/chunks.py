"""The bytes of SGLang's chat answers (0.5.23, as recorded from the real server), the constant parts rendered once."""

import json
import time

from headrace_dev.simulator.script import ToolCall

DONE = b"data: [DONE]\n\n"
FULL_MESSAGE = "The request queue is full."


def text_json(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass")


_PLAIN: list[bytes] = []


def plain_token(index: int) -> bytes:
    """The JSON of the default text of token `index`: `tok0 `, `tok1 `, ..."""
    while len(_PLAIN) <= index:
        _PLAIN.append(b'"tok%d "' % len(_PLAIN))
    return _PLAIN[index]


class Chunks:
    """The events of one stream. Fragments of usage begin with a comma or are empty."""

    def __init__(self, rid: str, model: str) -> None:
        self._head = b'data: {"id":%b,"object":"chat.completion.chunk","created":%d,"model":%b,"choices":[' % (
            text_json(rid),
            int(time.time()),
            text_json(model),
        )
        self._open = self._head + b'{"index":%d,"delta":{"reasoning_content":'
        self._content = self._open + b'null,"content":'
        self._close = b'},"logprobs":null,"finish_reason":null,"matched_stop":null}]'

    def role(self, index: int) -> bytes:
        return self._open % index + b'null,"role":"assistant","content":""' + self._close + b"}\n\n"

    def content(self, index: int, text: bytes, usage: bytes) -> bytes:
        return b"%b%b%b%b}\n\n" % (self._content % index, text, self._close, usage)

    def reasoning(self, index: int, text: bytes, usage: bytes) -> bytes:
        return b"%b%b%b%b}\n\n" % (self._open % index, text, self._close, usage)

    def tool(self, index: int, call: int, of: ToolCall, piece: int, usage: bytes) -> bytes:
        first = piece == 0
        delta = {
            "id": f"call_{call:024d}" if first else None,
            "index": call,
            "type": "function",
            "function": {"name": of.name if first else None, "arguments": of.arguments[piece]},
        }
        body = b'null,"tool_calls":[' + json.dumps(delta, ensure_ascii=False).encode() + b"]"
        return self._open % index + body + self._close + usage + b"}\n\n"

    def finish(self, index: int, reason: str, usage: bytes) -> bytes:
        stop = b"2" if reason == "stop" else b"null"
        return b'%bnull},"logprobs":null,"finish_reason":%b,"matched_stop":%b}]%b}\n\n' % (
            self._open % index,
            text_json(reason),
            stop,
            usage,
        )

    def usage(self, figures: bytes) -> bytes:
        return self._head + b'],"usage":' + figures + b"}\n\n"

    @staticmethod
    def error(message: str, code: int, kind: str = "SERVICE_UNAVAILABLE") -> bytes:
        body = {"error": {"object": "error", "message": message, "type": kind, "param": None, "code": code}}
        return b"data: " + json.dumps(body).encode() + b"\n\n"


def error_body(message: str, code: int, kind: str) -> bytes:
    """SGLang's error answer: no `error` wrapper."""
    return json.dumps(
        {"object": "error", "message": message, "type": kind, "param": None, "code": code}, separators=(",", ":")
    ).encode()
