"""Tool calls as clients take them: each with an id of its own, a type, a name, and arguments that are text.

In a stream they are put together by their index, and a call's first piece names it. Engines leave ids and indices out,
give each call the same, repeat names or split them; clients that append or overwrite would call another tool.
"""

import secrets
from typing import Any

import msgspec

from headrace.gateway.answers.schema import CallPiece

_OWN = frozenset({"index", "id", "type", "function"})


class _StreamedCall:
    """One call as far as it has come. their_index, their_id: what the engine says. It is told once its name is whole.

    index: by which clients know it; None: it was not told yet.
    more: what a piece says beyond OpenAI's schema (Google's signatures)."""

    def __init__(self, their_index: int | None, their_id: str) -> None:
        self.their_index, self.their_id = their_index, their_id
        self.name = ""
        self.arguments: list[str] = []
        self.more: dict[str, Any] = {}
        self.index: int | None = None

    @property
    def is_told(self) -> bool:
        return self.index is not None

    @property
    def is_begun(self) -> bool:
        """Whether there is anything of its arguments."""
        return any(piece.strip() for piece in self.arguments)

    @property
    def is_whole(self) -> bool:
        """Whether its arguments are a whole JSON value, which the next piece cannot continue."""
        try:
            msgspec.json.decode("".join(self.arguments))
        except (msgspec.DecodeError, UnicodeEncodeError):
            return False
        return True


class StreamedCalls:
    """The tool calls of one choice of a stream. names: of the tools that may be called; empty: it is not known."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._calls: list[_StreamedCall] = []
        self._by_index: dict[int, _StreamedCall] = {}  # the engine's: the last call that had it
        self._ids: set[str] = set()
        self._told = 0

    @property
    def has_held(self) -> bool:
        """Whether a call was not told yet, since its name may not be whole."""
        return any(not call.is_told for call in self._calls)

    def continues(self, piece: CallPiece) -> bool:
        """Whether a piece is what clients take as it is: more arguments of a call that they know."""
        call = self._by_index.get(piece.index)
        return call is not None and call.is_told and call.index == piece.index and not (piece.id or piece.function.name)

    def note(self, piece: CallPiece) -> None:
        """Take a piece that is passed on as it came."""
        self._by_index[piece.index].arguments.append(piece.function.arguments)

    def take(self, pieces: Any) -> list[dict[str, Any]]:
        """The pieces that clients get for those of an engine."""
        told: list[dict[str, Any]] = []
        for piece in _listed(pieces):
            told += self._take(piece)
        return told

    def end(self) -> list[dict[str, Any]]:
        """What is left to be told at the end of the choice."""
        return [self._tell(call) for call in self._calls if not call.is_told and (call.name or call.is_begun)]

    def _take(self, piece: dict[str, Any]) -> list[dict[str, Any]]:
        index, call_id = _number(piece.get("index")), _identity(piece.get("id"))
        name, arguments = _function(piece)
        call, told = self._call_of(index, call_id, name, arguments), []
        if call is None:
            if not (call_id or name or arguments):
                return []
            told = self.end()  # indices have to come in order
            call = _StreamedCall(index, call_id)
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        call.their_id = call.their_id or call_id
        call.arguments.append(arguments)
        more = {key: value for key, value in piece.items() if key not in _OWN}
        if call.is_told:
            if arguments or more:
                told.append({"index": call.index, "function": {"arguments": arguments}, **more})
            return told
        call.more |= more
        # Some write the name so far in each piece, some what is new of it.
        call.name = name if name.startswith(call.name) else call.name + name
        if call.name and (call.is_begun or self._is_certain(call.name)):
            told.append(self._tell(call))
        return told

    def _call_of(self, index: int | None, call_id: str, name: str, arguments: str) -> _StreamedCall | None:
        """The call that a piece belongs to; None for a new one."""
        last = self._calls[-1] if self._calls else None
        call = last if index is None else self._by_index.get(index)
        if call is None and last is not None and not (call_id or name or last.is_whole):
            return last  # it goes on, under another index
        if call is not None and call_id and call.their_id and call_id != call.their_id:
            same = [each for each in self._calls if each.their_id == call_id and index in {None, each.their_index}]
            call = same[-1] if same else None
        elif call is not None and call_id and not call.their_id and name and call.name:
            call = None
        if call is None or not name or not call.name or not call.is_begun:
            return call
        # Its name again: repeated in each piece, or the next call, without an id or with the same.
        is_next = name != call.name or (call.is_whole and arguments.strip() != "")
        return None if is_next else call

    def _is_certain(self, name: str) -> bool:
        """Whether no more of a name can come."""
        is_known = name in self._names or not self._names
        return is_known and not any(other != name and other.startswith(name) for other in self._names)

    def _tell(self, call: _StreamedCall) -> dict[str, Any]:
        call.index = self._told
        self._told += 1
        return {
            "index": call.index,
            "id": _unique(call.their_id, self._ids),
            "type": "function",
            "function": {"name": call.name, "arguments": "".join(call.arguments)},
            **call.more,
        }


def normalise_calls(calls: Any) -> list[dict[str, Any]]:
    """The tool calls of a whole message; empty where there are none."""
    made, ids = [], set[str]()
    for call in _listed(calls):
        name, arguments = _function(call)
        if not (name or arguments):
            continue  # no call
        more = {key: value for key, value in call.items() if key not in _OWN}
        function = {"name": name, "arguments": arguments}
        call_id = _unique(_identity(call.get("id")), ids)
        made.append({"id": call_id, "type": "function", "function": function, **more})
    return made


def _listed(calls: Any) -> list[dict[str, Any]]:
    return [call for call in (calls if isinstance(calls, list) else [calls]) if isinstance(call, dict)]


def _number(value: Any) -> int | None:
    """An index; None for what is none."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 6:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _identity(value: Any) -> str:
    """An id as text; empty where there is none."""
    return str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _unique(call_id: str, ids: set[str]) -> str:
    """`call_id`, or a new one where it is missing or another call's already: results are told apart by it."""
    call_id = call_id if call_id and call_id not in ids else f"call_{secrets.token_hex(12)}"
    ids.add(call_id)
    return call_id


def _function(call: dict[str, Any]) -> tuple[str, str]:
    """The name and the arguments, as text, of a call or a piece of one; some leave its `function` out."""
    function = call.get("function")
    if not isinstance(function, dict):
        function = call
    name, arguments = function.get("name"), function.get("arguments", function.get("parameters"))
    if arguments is None:
        arguments = ""
    elif not isinstance(arguments, str):
        arguments = msgspec.json.encode(arguments).decode()
    return name if isinstance(name, str) else "", arguments
