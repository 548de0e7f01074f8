"""Tool calls as strict clients take them: arguments are text, and those of a stream are numbered."""

import re
from typing import Any

import msgspec

# What Unicode also ends lines with: JSON takes it as it is, but many clients part a stream's lines at it.
_LINE_ENDS = {b"\xe2\x80\xa8": rb"\u2028", b"\xe2\x80\xa9": rb"\u2029", b"\xc2\x85": rb"\u0085"}
_CALLS = re.compile(rb'"tool_calls"\s*:\s*\[\s*\{')


class Numbering:
    """Numbers for the tool calls of one stream, whose upstream leaves them out: clients put calls together by them.

    A call is known by its id; a piece without one belongs to the last.
    """

    def __init__(self) -> None:
        self._ids: dict[int, list[str]] = {}

    def number(self, choice: int, call_id: str) -> int:
        ids = self._ids.setdefault(choice, [])
        if not ids or (call_id and call_id not in ids):
            ids.append(call_id)
        return ids.index(call_id) if call_id else len(ids) - 1


def passable(choices: bytes, numbering: Numbering | None = None) -> bytes:
    """Choices, streamed (with their stream's `numbering`) or whole, as clients take them, on one line."""
    for end, escaped in _LINE_ENDS.items():
        if end in choices:
            choices = choices.replace(end, escaped)
    if b'"tool_calls"' in choices and _CALLS.search(choices):
        decoded = msgspec.json.decode(choices)
        if any([_mend(choice, numbering) for choice in decoded]):
            return msgspec.json.encode(decoded)
    # An event sent as several data lines has line ends between its tokens, which must not reach our own line.
    return msgspec.json.format(choices, indent=-1) if b"\n" in choices else choices


def _mend(choice: dict[str, Any], numbering: Numbering | None) -> bool:
    """Mend the calls of `choice`; whether there was anything to mend."""
    calls = (choice.get("delta") or choice.get("message") or {}).get("tool_calls")
    is_mended = False
    for call in calls if isinstance(calls, list) else ():
        if not isinstance(call, dict):
            continue
        function = call.get("function")
        if isinstance(function, dict) and not isinstance(arguments := function.get("arguments", ""), str):
            function["arguments"] = "" if arguments is None else msgspec.json.encode(arguments).decode()
            is_mended = True
        if numbering is not None and not isinstance(call.get("index"), int):
            call["index"] = numbering.number(choice.get("index") or 0, str(call.get("id") or ""))
            is_mended = True
    return is_mended
