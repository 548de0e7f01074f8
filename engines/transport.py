"""httpx over aiohttp, with the reader of each answer at hand.

httpx wraps a body in four nested generators; a stream of a hundred events goes through them a hundred times. Reading
aiohttp's own StreamReader instead costs a fifth of the gateway's time per event less.
"""

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport
from httpx_aiohttp.transport import AiohttpResponseStream


class Transport(AiohttpTransport):
    """As its parent; the aiohttp reader of an answer's body is in its extensions."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        assert isinstance(response.stream, AiohttpResponseStream)
        response.extensions["reader"] = response.stream._aiohttp_response.content
        return response


def reader(response: httpx.Response) -> aiohttp.StreamReader:
    """The reader of an answer that came through Transport. Read either it or the response, not both."""
    found: aiohttp.StreamReader = response.extensions["reader"]
    return found
