"""From an Authorization header to a principal: one digest and one look-up in memory, or a 401 that says nothing."""

from headrace.gateway.errors import ApiError
from tenants import keys
from tenants.keyring import Keyring, Principal

_LONGEST = 256


def authenticate(headers: list[tuple[bytes, bytes]], keyring: Keyring) -> Principal:
    """The principal of the one bearer key in `headers`. Raises ApiError invalid_api_key, for whatever reason.

    What cannot be a key is refused before anything is computed. The digest is looked up, never compared: how long it
    takes tells nothing of how much of a guess was right.
    """
    sent = [value for name, value in headers if name == b"authorization"]
    # Space around a header's value is not part of it (RFC 9110, 5.5), and not every server takes it away.
    scheme, _, token = sent[0].strip(b" \t").partition(b" ") if len(sent) == 1 else (b"", b"", b"")
    if scheme.lower() != b"bearer" or not 0 < len(token) <= _LONGEST or not _is_printable(token):
        raise _refusal("Send one API key in the header 'Authorization: Bearer sk-hr-...'.")
    found = (keyring.find(digest) for digest in keys.digests(token.decode("ascii")))
    principal = next((each for each in found if each is not None), None)
    if principal is None:
        raise _refusal("The API key is not valid, or it is revoked.")
    if not principal.is_valid():
        raise _refusal("The API key is expired, or its tenant is suspended.")
    return principal


def _is_printable(token: bytes) -> bool:
    return token.isascii() and all(32 < byte < 127 for byte in token)


def _refusal(message: str) -> ApiError:
    return ApiError("invalid_api_key", message)
