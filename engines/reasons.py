"""An engine's own words for why it refused or failed: read from any form of error, and made fit to be told.

Engines' messages hold file paths, addresses, keys, and the whole of what a client sent. What is told keeps the sentence
and loses those: clients, records and logs get the same form.
"""

import re
from collections.abc import Mapping
from typing import Any

LONGEST = 300
_LONGEST_READ = 4000
_GAP = "[...]"
# From here on a message repeats its input, or tells where in a program it failed.
_REPEATS = re.compile(
    r"(['\"]?\binput(_value)?['\"]?\s*[:=])|\bTraceback\b|\bFile ['\"]|\[type=|\bFor further information", re.IGNORECASE
)
_LONG_QUOTE = re.compile(r"(['\"`])(?=[^'\"`]{65})[^'\"`]*(\1|$)")
_UNFIT = re.compile(
    r"""
    \b\w+://\S*                                                         # addresses
    | (?:Bearer|Basic)\s+\S+
    | \b(?:api[_-]?key|token|secret|password|authorization)['"]?\s*[=:]\s*\S+
    | \b(?:sk|pk|hf|gsk|xai|key)[-_][\w-]{6,}                            # keys as vendors write them
    | \S*[\w.]@[\w.]\S*                                                  # people's addresses
    | (?<!\S)(?!['"`(]*\#/[\w/$-]+['"`).,;]*(?:\s|$))\S*[/\\]\S*         # paths, not JSON pointers
    | \b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b
    | \b[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){3,}\b                            # IPv6
    | \b[\w.-]+:\d{2,5}\b                                                # hosts with a port
    | \b[\w-]+(?:\.[\w-]+)*\.(?:local|internal|intranet|corp|lan|svc|cluster|com|net|org|io|ai|dev|cloud)\b\S*
    | \b0x[0-9a-fA-F]+\b
    | <[^<>]*>                                                           # objects as Python writes them
    | \b(?=[A-Za-z+=_-]*\d)[A-Za-z0-9+=_-]{24,}                          # hashes, tokens, base64
    """,
    re.VERBOSE | re.IGNORECASE,
)
_GAPS = re.compile(r"(?:\[\.\.\.\][\s,;:.'\"`()]*){2,}")


def read_reason(detail: Any) -> str:
    """What an error's JSON says in words, not yet fit to be told; "" where it says nothing."""
    return _words(detail)[:_LONGEST_READ]


def read_param(detail: Any) -> str | None:
    """The field an error names as its cause."""
    param = detail.get("param") if isinstance(detail, dict) else None
    return param[:128] if isinstance(param, str) and param else None


def fit_to_tell(reason: str, *, renamed: Mapping[str, str] | None = None) -> str | None:
    """The sentence in `reason` without what nobody outside may see; None where nothing is left. At most LONGEST
    characters.

    renamed: names of ours that stand in a message, and what to write for them.
    """
    text = "".join(each if each.isprintable() else " " for each in reason)
    if (found := _REPEATS.search(text)) is not None:
        text = text[: found.start()]
    for name, public in (renamed or {}).items():
        text = text.replace(name, public) if name else text
    text = _LONG_QUOTE.sub(_GAP, text)
    text = _GAPS.sub(_GAP + " ", _UNFIT.sub(_GAP, text))
    text = " ".join(text.split())[:LONGEST].strip(" {[(,;:'\"")
    told = text.replace(_GAP, "")
    return text if sum(each.isalpha() for each in told) >= 6 else None


def _words(detail: Any, depth: int = 0) -> str:
    if isinstance(detail, str):
        return detail
    if depth > 3:
        return ""
    if isinstance(detail, list):
        return "; ".join(words for each in detail[:5] if (words := _words(each, depth + 1)))
    if not isinstance(detail, dict):
        return ""
    if "loc" in detail and isinstance(detail.get("msg"), str):  # FastAPI's: where, and what
        place = detail["loc"] if isinstance(detail["loc"], list) else [detail["loc"]]
        return f"{'.'.join(str(each) for each in place if each != 'body')}: {detail['msg']}"
    metadata = detail.get("metadata")
    inner = metadata.get("raw") if isinstance(metadata, dict) else None  # a router's, of who it asked
    for each in (detail.get("message"), detail.get("detail"), detail.get("msg"), detail.get("error"), inner):
        if each and (words := _words(each, depth + 1)):
            return f"{words} {inner}" if isinstance(inner, str) and inner not in words else words
    return ""
