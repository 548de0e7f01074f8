"""Any hosted OpenAI-compatible API."""

from engines.protocols.base import Protocol


class OpenAI(Protocol):
    """Nothing beyond the schema. Closing the connection is all the abort there is; some providers bill on."""

    name = "openai"
    bills_on = True
    is_hosted = True
    max_tokens_field = "max_completion_tokens"
