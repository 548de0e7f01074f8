"""What both servers say to a request that they refuse before the application sees all of it."""

from headrace.gateway.errors import ApiError

# How long a refused client may go on sending before it is cut off; it should read its answer meanwhile.
LINGER_SECONDS = 2.0
# Longer than the usual proxy's, so that it is the proxy that closes an idle connection.
KEEP_ALIVE_SECONDS = 75

_REASONS = {
    400: b"Bad Request",
    408: b"Request Timeout",
    413: b"Content Too Large",
}


def refusal(error: ApiError) -> bytes:
    """A complete answer that ends its connection."""
    body = error.as_json()
    return b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (
        error.status,
        _REASONS.get(error.status, b"Refused"),
        len(body),
        body,
    )
