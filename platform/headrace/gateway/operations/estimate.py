"""How many tokens a prompt will be, before anything counted it: bytes over bytes per token, learned per tokenizer.

The estimate only sizes holds; what is billed is counted. It costs microseconds whatever the prompt is.
"""

from headrace.gateway.operations.operation import Operation
from routing.catalog import Target

# Until a model has shown its own: English prose runs at 4 to 4.5 bytes a token, code and CJK at about 3.
_FIRST = 3.5
_LEAST, _MOST = 1.0, 8.0
# Until a model has shown its own: chats average a few hundred tokens (ShareGPT about 200, LMSYS-Chat 215).
_FIRST_OUTPUT = 256.0
_WEIGHT = 0.05


class Estimator:
    """Bytes per token by tokenizer, an exponential average over this process's requests of 64 bytes and more."""

    def __init__(self) -> None:
        self._ratio: dict[str, float] = {}
        self._output: dict[str, float] = {}

    def bytes_per_token(self, tokenizer: str) -> float:
        return self._ratio.get(tokenizer, _FIRST)

    def prompt_tokens(self, tokenizer: str, operation: Operation) -> int:
        """The estimated prompt, media and message frames included; at least 1."""
        text = operation.text_bytes + operation.schema_bytes
        return max(1, operation.other_tokens + round(text / self.bytes_per_token(tokenizer)))

    def output_tokens(self, model: str, most: int) -> int:
        """What an answer that may have `most` tokens is likely to have: twice the model's average, to be careful."""
        return max(1, min(most, round(2 * self._output.get(model, _FIRST_OUTPUT))))

    def learn_output(self, model: str, tokens: int) -> None:
        """Take one choice's length into the average."""
        self._output[model] = (1 - _WEIGHT) * self._output.get(model, _FIRST_OUTPUT) + _WEIGHT * tokens

    def learn(self, tokenizer: str, operation: Operation, prompt_tokens: int) -> None:
        """Take a reported prompt into the average."""
        text = operation.text_bytes + operation.schema_bytes
        tokens = prompt_tokens - operation.other_tokens
        if text < 64 or tokens <= 0 or len(operation.modalities) > 1:
            return
        ratio = min(_MOST, max(_LEAST, text / tokens))
        self._ratio[tokenizer] = (1 - _WEIGHT) * self.bytes_per_token(tokenizer) + _WEIGHT * ratio


def tokenizer(target: Target) -> str:
    """What stands for the tokenizer at `target`: the place and the model's name there."""
    return f"{target.name} {target.replicas[0].upstream.model}" if target.replicas else target.name
