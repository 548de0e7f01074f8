"""The neutral values of request fields: those that ask for nothing. A neutral value is never refused, of any field.

Clients of many libraries write every field with its default. Some engines and providers refuse a field whatever its
value is, and fields that are not on the allow-list would be refused here: with a neutral value, neither happens. null
is neutral everywhere.
"""

from typing import Any

import msgspec

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
    "allowed_token_ids": ([],),
    "bad_words": ([],),
    "best_of": (1,),
    "cache_prompt": (True,),
    "continue_final_message": (False,),
    "continuous_usage_stats": (False,),
    "custom_params": ({},),
    "documents": ([],),
    "dry_multiplier": (0,),
    "dynatemp_range": (0,),
    "echo": (False,),
    "extra_body": ({},),
    "grammar": ("",),
    "id_slot": (-1,),
    "include_reasoning": (True,),
    "include_stop_str_in_output": (False,),
    "length_penalty": (1,),
    "logits_processors": ([],),
    "lora_path": ("",),
    "min_tokens": (0,),
    "mirostat": (0,),
    "mm_processor_kwargs": ({},),
    "n_keep": (0,),
    "n_probs": (0,),
    "no_stop_trim": (False,),
    "plugins": ([],),
    "post_sampling_probs": (False,),
    "priority": (0,),
    "provider": ({},),
    "repeat_penalty": (1,),
    "return_hidden_states": (False,),
    "return_token_ids": (False,),
    "return_tokens": (False,),
    "return_tokens_as_token_ids": (False,),
    "safe_prompt": (False,),
    "separate_reasoning": (True,),
    "skip_special_tokens": (True,),
    "spaces_between_special_tokens": (True,),
    "stop_token_ids": ([],),
    "stream_reasoning": (True,),
    "suffix": ("",),
    "tfs_z": (1,),
    "timings_per_token": (False,),
    "top_a": (0,),
    "transforms": ([],),
    "typical_p": (1,),
    "use_beam_search": (False,),
    "xtc_probability": (0,),
}
# No neutral value is longer: what is need not be read for this.
_LONGEST = 64


def is_neutral(name: str, value: msgspec.Raw) -> bool:
    """Whether the field `name` asks for nothing by this value. false is no 0, and 1.0 is 1."""
    raw = bytes(value)
    if raw == b"null":
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
