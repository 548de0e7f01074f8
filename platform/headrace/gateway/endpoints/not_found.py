"""Every path that is not served here."""

from typing import ClassVar

from headrace.gateway.errors import ApiError
from headrace.gateway.relay.consumer import StreamingConsumer


class UnknownConsumer(StreamingConsumer):
    """A 404 in the API's own form, whatever the method, before any body."""

    methods: ClassVar[frozenset[str]] = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

    async def before_body(self) -> None:
        await self.handle(b"")

    async def handle(self, body: bytes) -> None:
        raise ApiError(
            "not_found",
            "There is nothing here. The API's base address ends in /v1; below it are /chat/completions and /models.",
        )
