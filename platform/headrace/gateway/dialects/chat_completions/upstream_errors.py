"""The API's error for each failure of an upstream."""

from engines import errors as engine
from headrace.gateway.dialects.chat_completions.fields import CHAT
from headrace.gateway.errors import ApiError, no_media


def from_upstream(error: engine.UpstreamError) -> ApiError:
    """What the client is told of an upstream's failure. Of the upstream's own text only a refusal's reason passes, as
    far as it is fit to be told."""
    match error:
        case engine.Rejected(kind="context_length"):
            return ApiError(
                "context_length_exceeded",
                "The prompt and max_tokens exceed the model's context window.",
                param="messages",
            )
        case engine.Rejected(kind="media"):
            return no_media(str(error.param))
        case engine.Rejected(told=str(told)):
            said = f"The model's engine refuses this request: {told}"
            return ApiError("invalid_request", said, param=error.param if error.param in CHAT else None)
        case engine.Rejected():
            return ApiError("invalid_request", "The model's engine cannot process this request.")
        case engine.Busy():
            return ApiError(
                "no_capacity", "All replicas of this model are busy.", retry_after=min(error.retry_after or 1.0, 60.0)
            )
        case engine.TimedOut():
            return ApiError("upstream_timeout", f"The model's engine took too long ({error.which.replace('_', ' ')}).")
        case engine.Disconnected():
            return ApiError("upstream_disconnected", "The model's engine broke off the answer.")
        case engine.Unreachable():
            return ApiError("upstream_error", "The model's engine cannot be reached.")
        case engine.BadAnswer():
            return ApiError("upstream_error", "The model's engine gave no valid answer.")
        case _:
            return ApiError("upstream_error", "The model's engine failed.")
