"""Media that a model does not take: known ahead from its engines, or told by one, in whatever form.

An engine that takes only text may call an image its own failure (llama.cpp answers 500): it is the request's, and
says nothing of the engine.
"""

import re

from engines.errors import BadAnswer, Failed, Rejected, UpstreamError
from headrace.gateway.state.request_state import RequestState

# What engines call each kind, and that they do not take it. A word on a file's form is about that one file.
_KINDS = {
    "image": re.compile(r"image|vision|multi-?modal|mmproj|picture", re.IGNORECASE),
    "video": re.compile(r"video|vision|multi-?modal|mmproj", re.IGNORECASE),
    "audio": re.compile(r"audio|sound|speech|multi-?modal|mmproj", re.IGNORECASE),
}
_NOT_TAKEN = re.compile(
    r"not support|unsupported|not accept|(?:does|do|can|is|are|may)(?:n't| not)|cannot|not a multi|at most 0"
    r"|no endpoints|only (?:text|supported|support)|text[- ]only|not enabled|missing|mmproj|invalid content type",
    re.IGNORECASE,
)
_OF_ONE_FILE = re.compile(
    r"format|size|dimension|base64|decod|url|too (?:large|many|long)|corrupt|truncat", re.IGNORECASE
)


def judge_media(request: RequestState, error: UpstreamError) -> UpstreamError:
    """`error`, or, where the engine says by it that it takes no such media as the request has, the refusal that is."""
    media = request.operation.modalities - {"text"}
    if not media or not isinstance(error, Failed | Rejected | BadAnswer) or getattr(error, "kind", "") == "media":
        return error
    if not _NOT_TAKEN.search(error.reason) or _OF_ONE_FILE.search(error.reason):
        return error
    for kind in sorted(media):
        if _KINDS[kind].search(error.reason):
            refusal = Rejected(f"the model takes no {kind}", kind="media", status=error.status or 400)
            refusal.reason, refusal.param = error.reason, kind
            return refusal
    return error
