"""The neutral values of request fields: those that ask for nothing. A neutral value is never refused, of any field.

Clients of many libraries write every field with its default. Some engines and providers refuse a field whatever its
value is, and fields that are not on the allow-list would be refused here: with a neutral value, neither happens. null
is neutral everywhere, and so is what is empty of a field that is not on the allow-list.
"""

from typing import Any

import msgspec

from headrace.gateway.dialects.chat_completions.fields import CHAT

_AUTO: tuple[Any, ...] = ("auto", {"type": "auto"})

# By field, OpenAI's and the engines' own: what it is where it is left out.
NEUTRAL: dict[str, tuple[Any, ...]] = {
    # OpenAI's schema.
    "frequency_penalty": (0,),
    "function_call": ("auto", "none"),
    "functions": ([],),
    "logit_bias": ({},),
    "logprobs": (False,),
    "metadata": ({},),
    "modalities": (["text"],),
    "n": (1,),
    "parallel_tool_calls": (True,),
    "presence_penalty": (0,),
    "reasoning_effort": ("auto", "default"),
    "response_format": ({"type": "text"},),
    "service_tier": ("auto", "default"),
    "stop": ([], ""),
    "store": (False,),
    "stream": (False,),
    "stream_options": ({}, {"include_usage": False}, {"include_usage": None}),
    "tool_choice": _AUTO,
    "tools": ([],),
    "top_logprobs": (0,),
    "user": ("",),
    "verbosity": ("medium", "auto", "default"),
    # Extensions of open-weight engines that are on the allow-list.
    "chat_template_kwargs": ({},),
    "ignore_eos": (False,),
    "min_p": (0,),
    "repetition_penalty": (1,),
    "top_k": (-1, 0),
    # And those that are not: SGLang's, vLLM's, llama.cpp's and routers' own.
    "add_generation_prompt": (True,),
    "add_special_tokens": (False,),
    "best_of": (1,),
    "cache_prompt": (True,),
    "continue_final_message": (False,),
    "continuous_usage_stats": (False,),
    "decoder_input_details": (False,),
    "detokenize": (True,),
    "dry_allowed_length": (2,),  # without a dry_multiplier it says nothing, and so on below
    "dry_base": (1.75,),
    "dry_multiplier": (0,),
    "dry_penalty_last_n": (-1,),
    "dynatemp_exponent": (1,),
    "dynatemp_range": (0,),
    "early_stopping": (False,),
    "echo": (False,),
    "grammar_lazy": (False,),
    "id_slot": (-1,),
    "include_reasoning": (True,),
    "include_stop_str_in_output": (False,),
    "length_penalty": (1,),
    "min_tokens": (0,),
    "mirostat": (0,),
    "mirostat_eta": (0.1,),
    "mirostat_tau": (5,),
    "n_discard": (0,),
    "n_keep": (0,),
    "n_predict": (-1,),
    "n_probs": (0,),
    "no_stop_trim": (False,),
    "num_beams": (1,),
    "post_sampling_probs": (False,),
    "priority": (0,),
    "prompt_logprobs": (False,),
    "reasoning_format": ("auto",),
    "repeat_penalty": (1,),
    "return_full_text": (False,),
    "return_hidden_states": (False,),
    "return_logprob": (False,),
    "return_token_ids": (False,),
    "return_tokens": (False,),
    "return_tokens_as_token_ids": (False,),
    "safe_prompt": (False,),
    "separate_reasoning": (True,),
    "skip_special_tokens": (True,),
    "spaces_between_special_tokens": (True,),
    "stream_interval": (1,),
    "stream_reasoning": (True,),
    "t_max_predict_ms": (0,),
    "tfs_z": (1,),
    "thinking_budget": (-1,),
    "timings_per_token": (False,),
    "top_a": (0,),
    "top_n_sigma": (-1,),
    "typical_p": (1,),
    "use_beam_search": (False,),
    "watermark": (False,),
    "xtc_probability": (0,),
    "xtc_threshold": (0.1,),
}
# Empty, of a field that is not on the allow-list; but that of a search asks for one.
_EMPTY = frozenset({b'""', b"[]", b"{}"})
_ASKS_BY_ITSELF = frozenset({"web_search_options"})
# No neutral value is longer: what is need not be read for this.
_LONGEST = 64


def is_neutral(name: str, value: msgspec.Raw) -> bool:
    """Whether the field `name` asks for nothing by this value. false is no 0, and 1.0 is 1."""
    raw = bytes(value)
    if raw == b"null" or (raw in _EMPTY and name not in CHAT and name not in _ASKS_BY_ITSELF):
        return True
    known = NEUTRAL.get(name)
    if known is None or len(raw) > _LONGEST:
        return False
    try:
        given = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return False  # no JSON: whoever decodes the field says so
    return any(given == each and isinstance(given, bool) == isinstance(each, bool) for each in known)


def as_whole_number(value: msgspec.Raw) -> msgspec.Raw | None:
    """`2.0` and `2e0` as the 2 they are, as some languages write it; None for what is no whole number."""
    try:
        number = msgspec.json.decode(value, type=float)
    except msgspec.DecodeError:
        return None
    return msgspec.Raw(b"%d" % int(number)) if number.is_integer() and abs(number) < 2**63 else None
