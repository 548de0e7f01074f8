"""The time between tokens."""

from engines.sizing.replica import Replica
from engines.sizing.step import StepLoad, StepTime, step


def decode_step(replica: Replica, sequences: float, context: float) -> StepTime:
    """One step in which `sequences` each produce their next token at `context` tokens of context (no speculation).

    Pipeline stages hold different groups of sequences, so a step carries sequences / stages through all of them."""
    return step(replica, StepLoad(sequences=sequences / replica.parallel.pipeline, context=context))


def token_time(replica: Replica, sequences: float, context: float) -> float:
    """Seconds per output token of each sequence when nothing else runs.

    Without speculation, a step. With it, a step that verifies k + 1 tokens a sequence plus k proposals, over the
    tokens it yields: bandwidth is shared by the verified tokens, arithmetic is not, so it pays at small batches and
    costs at large ones. At batch 0 this is the floor."""
    plain = decode_step(replica, sequences, context).total
    if replica.speculation is None:
        return plain
    guess = replica.speculation
    verify = step(
        replica,
        StepLoad(
            sequences=sequences / replica.parallel.pipeline,
            context=context,
            tokens_each=guess.draft_tokens + 1,
        ),
    ).total
    return (verify + guess.draft_tokens * guess.draft_cost * plain) / guess.tokens_per_step


def tokens_per_second(replica: Replica, sequences: float, context: float) -> float:
    """Output tokens/s of a replica that only decodes: sequences / token_time."""
    return sequences / token_time(replica, sequences, context)


def decode_seconds(output: float, per_token: float) -> float:
    """Seconds to produce an answer after its first token: tokens x time per token (600 at 30 ms: 18 s)."""
    return output * per_token
