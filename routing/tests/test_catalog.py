"""Routes as the data plane looks them up: built whole from rows, one bad secret spoiling its own pool alone."""

from datetime import UTC, datetime
from typing import Any

from routing.catalog import Catalog, build

NOW = datetime(2026, 5, 1, tzinfo=UTC)
TIMEOUTS = (5.0, 60.0, 61.0, 600.0)


def built(**rows: list[tuple[Any, ...]]) -> Catalog:
    base: dict[str, list[tuple[Any, ...]]] = {
        "routing_model": [("chat", 8192, 500, True, NOW)],
        "routing_route": [("chat", "tenant", "refuse", "prefix_aware", *TIMEOUTS, 0.5, None, 30.0, 100, True)],
        "routing_target": [("chat", "main", None, "", None)],
        "engines_pool": [("main", "sglang", "smollm2", None, None)],
        "engines_replica": [("main", "r1", "http://10.0.0.1:30000/"), ("main", "r2", "http://10.0.0.2:30000")],
        "engines_provider": [],
    }
    return build(base | rows, lambda sealed: sealed.decode().removeprefix("sealed:"))


def test_it_leads_from_a_public_name_to_servers() -> None:
    [route] = built().routes.values()
    assert (route.model, route.context_window, route.default_max_tokens) == ("chat", 8192, 500)
    assert route.created == int(NOW.timestamp())
    assert (route.cache_scope, route.unknown_fields, route.policy) == ("tenant", "refuse", "prefix_aware")
    assert (
        route.connect_timeout,
        route.first_byte_timeout,
        route.between_events_timeout,
        route.total_timeout,
    ) == TIMEOUTS
    assert (route.ttft_target, route.tpot_target, route.ignore_eos) == (0.5, None, True)
    [target] = route.targets
    assert [(replica.name, replica.upstream.base_url) for replica in target.replicas] == [
        ("main/r1", "http://10.0.0.1:30000"),
        ("main/r2", "http://10.0.0.2:30000"),
    ]
    assert {replica.upstream.model for replica in target.replicas} == {"smollm2"}
    assert target.replicas[0].upstream.headers() == {}


def test_it_leaves_out_models_that_are_disabled_or_have_no_route() -> None:
    models = [("chat", 8192, 500, False, NOW), ("bare", 8192, 500, True, NOW)]
    assert built(routing_model=models).routes == {}


def test_it_keeps_a_route_whose_targets_have_no_replica() -> None:
    assert [target.replicas for target in built(engines_replica=[]).routes["chat"].targets] == [()]
    assert built(routing_target=[]).routes["chat"].targets == ()


def test_it_keeps_the_order_of_targets_and_renames_where_the_route_does() -> None:
    catalog = built(
        routing_target=[
            ("chat", "main", None, "finetuned", 4096),
            ("chat", None, "hosted", "gpt-x", None),
            ("chat", "main", None, "", 10_000),
        ],
        engines_provider=[("hosted", "openai", "https://api.example/v1/", b"sealed:k")],
    )
    first, hosted, last = catalog.routes["chat"].targets
    assert [target.window(catalog.routes["chat"]) for target in (first, hosted, last)] == [4096, 8192, 8192]
    assert {replica.upstream.model for replica in first.replicas} == {"finetuned"}
    assert {replica.upstream.model for replica in last.replicas} == {"smollm2"}
    [only] = hosted.replicas
    assert (only.name, only.upstream.model, only.upstream.base_url) == ("hosted", "gpt-x", "https://api.example")
    assert only.upstream.headers() == {"authorization": "Bearer k"}


def test_it_leaves_out_what_only_a_newer_version_can_speak_with() -> None:
    catalog = built(
        engines_pool=[("main", "sglang", "smollm2", None, None), ("newer", "of-tomorrow", "m", None, None)],
        engines_provider=[("later", "of-tomorrow", "https://api.example", None)],
        routing_target=[
            ("chat", "newer", None, "", None),
            ("chat", None, "later", "gpt-x", None),
            ("chat", "main", None, "", None),
        ],
    )
    assert [target.name for target in catalog.routes["chat"].targets] == ["main"]


def test_it_takes_a_provider_s_address_with_and_without_the_version() -> None:
    for address in ("https://api.example", "https://api.example/", "https://api.example/v1", "https://api.example/v1/"):
        catalog = built(
            routing_target=[("chat", None, "hosted", "gpt-x", None)],
            engines_provider=[("hosted", "openai", address, None)],
        )
        [target] = catalog.routes["chat"].targets
        upstream = target.replicas[0].upstream
        assert upstream.base_url + upstream.protocol.chat_path == "https://api.example/v1/chat/completions"


def test_it_opens_the_secrets_of_a_pool() -> None:
    catalog = built(engines_pool=[("main", "sglang", "smollm2", b"sealed:a", b"sealed:b")])
    upstream = catalog.routes["chat"].targets[0].replicas[0].upstream
    assert (upstream.api_key, upstream.admin_key) == ("a", "b")
