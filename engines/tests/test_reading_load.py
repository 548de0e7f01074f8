"""What each engine says of its load, in its own shape, and what is made of it."""

import json

import msgspec
import pytest

from engines.protocols import PROTOCOLS
from engines.protocols.reading import Reading

RANK = {
    "dp_rank": 0, "num_running_reqs": 3, "num_waiting_reqs": 2, "num_waiting_uncached_tokens": 900,
    "num_used_tokens": 100, "max_total_num_tokens": 60000, "token_usage": 0.5, "gen_throughput": 120.5,
    "cache_hit_rate": 0.25,
}  # fmt: skip
LOADS = "/v1/loads?include=core"
SGLANG = """
# HELP sglang:num_running_reqs The number of running requests.
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="m",priority="",tp_rank="0"} 4.0
sglang:num_running_reqs{model_name="m",priority="5",tp_rank="0"} 3.0
sglang:num_running_reqs{model_name="m",priority="",tp_rank="1"} 4.0
sglang:num_queue_reqs{model_name="m",priority="",tp_rank="0"} 7.0
sglang:token_usage{model_name="m",priority="",tp_rank="0"} 0.125
sglang:max_total_num_tokens{model_name="m",priority="",tp_rank="0"} 65536.0
sglang:cache_hit_rate{model_name="m",priority="",tp_rank="0"} 0.5
sglang:gen_throughput{model_name="m",priority="",tp_rank="0"} 40.0
"""
RETRACTED = 'sglang:num_retracted_requests_total{model_name="m",priority="",tp_rank="0"} 6.0\n'
VLLM = """
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 8.0
vllm:num_requests_waiting{engine="0",model_name="m"} 1.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.75
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 1000.0
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 400.0
vllm:generation_tokens_total{engine="0",model_name="m"} 5000.0
vllm:num_preemptions_total{engine="0",model_name="m"} 2.0
vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="0",num_gpu_blocks="1000",note="a \\" quote"} 1.0
"""
LLAMACPP = """
llamacpp:prompt_tokens_total 300
llamacpp:prompt_tokens_cached_total 100
llamacpp:tokens_predicted_total 150
llamacpp:requests_processing 0
llamacpp:requests_deferred 2
"""
SLOTS = [
    {"id": 0, "n_ctx": 2048, "is_processing": False},
    {
        "id": 1,
        "n_ctx": 2048,
        "is_processing": True,
        "n_prompt_tokens": 385,
        "n_prompt_tokens_processed": 42,
        "next_token": [{"has_next_token": True, "n_remain": 1157, "n_decoded": 343}],
    },
]


def read(name: str, **answers: object) -> Reading:
    bodies = {path: value.encode() if isinstance(value, str) else json.dumps(value).encode() for path, value in
              ((path.replace("__", "/"), value) for path, value in answers.items())}  # fmt: skip
    return PROTOCOLS[name].read_load(bodies)


def test_it_reads_sglang_s_loads_and_adds_its_ranks_up() -> None:
    one = read("sglang", **{LOADS: {"loads": [RANK], "version": "0.5.23"}})
    assert one == Reading(3, 2, 900, 0.5, 60000, 0.25, None, None, 120.5, None, None)
    idle = RANK | {"dp_rank": 1, "num_running_reqs": 0, "num_waiting_reqs": 0, "num_waiting_uncached_tokens": 0,
                   "max_total_num_tokens": 20000, "token_usage": 0.1, "gen_throughput": 0.0}  # fmt: skip
    two = read("sglang", **{LOADS: {"loads": [RANK, idle]}})
    assert (two.running, two.waiting, two.waiting_tokens, two.kv_capacity) == (3, 2, 900, 80000)
    assert two.kv_used == pytest.approx(0.4)
    assert read("sglang", **{LOADS: {"loads": []}}) == Reading()


def test_it_reads_sglang_s_metrics_where_there_are_no_loads_and_retractions_there_only() -> None:
    page = read("sglang", **{"/metrics": SGLANG})
    assert page == Reading(4, 7, None, 0.125, 65536, 0.5, None, None, 40.0, None, 0)
    both = read("sglang", **{"/metrics": SGLANG + RETRACTED, LOADS: {"loads": [RANK]}})
    assert (both.running, both.waiting_tokens, both.retractions) == (3, 900, 6)


def test_it_reads_vllm_s_metrics_of_either_engine() -> None:
    new = read("vllm", **{"/metrics": VLLM})
    assert new == Reading(8, 1, None, 0.75, 16000, None, 1000.0, 400.0, None, 5000.0, 2)
    assert read("vllm", **{"/metrics": VLLM.replace("kv_cache", "gpu_cache")}).kv_used == 0.75


def test_it_takes_a_figure_that_is_no_number_for_unknown_and_the_others_as_they_are() -> None:
    page = VLLM.replace("} 8.0", "} NaN").replace("} 0.75", "} +Inf")
    found = read("vllm", **{"/metrics": page})
    assert (found.running, found.kv_used, found.waiting, found.kv_capacity) == (None, None, 1, 16000)


def test_it_reads_llama_cpp_s_slots_and_counts_what_the_running_ones_wrote() -> None:
    found = read("llamacpp", **{"/slots": SLOTS, "/metrics": LLAMACPP})
    assert (found.running, found.waiting, found.kv_capacity) == (1, 2, 4096)
    assert found.kv_used == pytest.approx(385 / 4096)
    assert (found.prompt_tokens, found.cached_tokens, found.output_tokens) == (400, 100, 150 + 343)
    assert found.waiting_tokens is None


def test_it_says_nothing_of_a_provider_s_load() -> None:
    assert PROTOCOLS["openai"].load_paths == ()
    assert read("openai") == Reading()


@pytest.mark.parametrize("name", ["sglang", "vllm", "llamacpp"])
@pytest.mark.parametrize("nonsense", [b"", b"<html>", b"[]", b'{"loads": 7}', b"\xff\xfe", b"vllm:x{ 1"])
def test_it_refuses_nonsense_or_reads_nothing_in_it(name: str, nonsense: bytes) -> None:
    protocol = PROTOCOLS[name]
    for path in protocol.load_paths:
        try:
            found = protocol.read_load({path: nonsense})
        except (ValueError, msgspec.MsgspecError):
            continue
        assert found.running in {None, 0}
