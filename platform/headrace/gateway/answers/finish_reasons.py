"""Why an answer ended, in OpenAI's five words, which are all that SDKs know; engines have many more.

A word that means none of them is a failure of the answer: no finish_reason is ever invented. The record keeps the
engine's own word.
"""

from typing import Any

from engines.errors import Failed, Incomplete, UpstreamError

STOP, LENGTH, TOOL_CALLS, CONTENT_FILTER = "stop", "length", "tool_calls", "content_filter"

# The words of SGLang, vLLM, llama.cpp, TGI, Anthropic, Cohere, Gemini, Mistral, Bedrock, Zhipu and others, small and
# with underscores.
_WORDS: dict[str, tuple[str, ...]] = {
    STOP: (
        "stop", "complete", "completed", "done", "end", "end_of_text", "end_of_turn", "end_turn", "endoftext", "eos",
        "eos_found", "eos_token", "finish", "finished", "stop_sequence", "stop_sequence_hit", "stop_string",
        "stop_token", "stop_word", "stopped", "stop_str",
    ),
    LENGTH: (
        "length", "context_length", "length_capped", "length_limit", "limit", "max_completion_tokens", "max_length",
        "max_new_tokens", "max_output_tokens", "max_token", "max_tokens", "model_context_window_exceeded",
        "model_length", "repetition", "token_limit", "truncated",
    ),
    TOOL_CALLS: ("tool_calls", "function_call", "function_calls", "tool", "tool_call", "tool_use", "tools"),
    CONTENT_FILTER: (
        "content_filter", "blocklist", "content_blocked", "content_filtered", "error_toxic", "guardrail_intervened",
        "guardrails", "image_prohibited_content", "image_recitation", "image_safety", "language", "moderation",
        "prohibited_content", "recitation", "refusal", "safety", "sensitive", "spii",
    ),
}  # fmt: skip
_FAILURES = frozenset({
    "abort", "aborted", "cancel", "canceled", "cancelled", "error", "error_limit", "exception", "engine_error", "fail",
    "failed", "failure", "insufficient_system_resource", "internal_error", "interrupted", "killed",
    "malformed_function_call", "malformed_response", "network_error", "no_image", "other", "preempted", "server_error",
    "shutdown", "terminated", "time_limit", "timed_out", "timeout", "too_many_tool_calls", "unexpected_tool_call",
    "user_cancel",
})  # fmt: skip
# What says that the answer goes on.
_NONE = frozenset({
    "", "none", "null", "in_progress", "incomplete", "not_finished", "unfinished", "unspecified",
    "finish_reason_unspecified",
})  # fmt: skip
_KNOWN = {word: reason for reason, words in _WORDS.items() for word in words}


def word_of(value: Any) -> str | None:
    """The engine's own word; None while the answer goes on. SGLang's native form is an object with a type."""
    if isinstance(value, dict):
        value = value.get("type") or value.get("reason")
    if value is None or value is False or value == {}:
        return None
    word = value if isinstance(value, str) else str(value)
    return None if _plain(word) in _NONE else word


def finish_reason(word: str | None) -> str | None:
    """OpenAI's word for an engine's; None for none, and for one that is a failure (`failure`)."""
    return None if word is None else _KNOWN.get(_plain(word))


def failure(word: str | None) -> UpstreamError | None:
    """What a word means that is no end of an answer; None for one that is."""
    if word is None or _plain(word) in _KNOWN:
        return None
    if _plain(word) in _FAILURES:
        return Failed("the engine gave up")
    return Incomplete("a finish_reason that nobody knows")


def _plain(word: str) -> str:
    """`FinishReason.MAX_TOKENS`, `max-tokens` and `Max Tokens` are `max_tokens`."""
    plain = word.strip().lower().rpartition(".")[2].replace("-", "_").replace(" ", "_")
    return plain.removeprefix("finish_reason_") or plain
