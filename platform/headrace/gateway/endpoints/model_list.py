"""GET /v1/models and /v1/models/NAME: what this key may call."""

import msgspec

from headrace.gateway.admission.authentication import authenticate
from headrace.gateway.admission.ranking import find_route
from headrace.gateway.relay.consumer import StreamingConsumer
from routing.catalog import Route


class ModelsConsumer(StreamingConsumer):
    """OpenAI's model list; `context_window` is ours."""

    async def handle(self, body: bytes) -> None:
        self.require_ready()
        principal = authenticate(self.scope["headers"], self.gateway.snapshot.keys)
        name = self.scope["path"].removeprefix("/v1/models").strip("/")
        if name:
            await self.respond(
                200, msgspec.json.encode(_model(find_route(self.gateway.snapshot.catalog, principal, name)))
            )
            return
        routes = self.gateway.snapshot.catalog.routes.values()
        data = [_model(route) for route in routes if principal.may_call(route.model)]
        await self.respond(200, msgspec.json.encode({"object": "list", "data": data}))


def _model(route: Route) -> dict[str, object]:
    return {
        "id": route.model,
        "object": "model",
        "created": route.created,
        "owned_by": "headrace",
        "context_window": route.context_window,
    }
