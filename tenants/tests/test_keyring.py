"""The keys in memory: found by digest, as they stand now, with every meter above them."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from tenants.keyring import Keyring, Principal

NOLIMITS = (None,) * 6


def tenant(slug: str = "acme", *, suspended_at: datetime | None = None, limits: tuple[Any, ...] = NOLIMITS) -> Any:
    return (slug, "EUR", "Europe/Paris", 1, 1.0, suspended_at, *limits)


def project(number: int = 1, slug: str = "app", *, limits: tuple[Any, ...] = NOLIMITS) -> Any:
    return (number, slug, *limits)


def key(
    public_id: str = "alice",
    digest: bytes = b"d1",
    *,
    of: str = "acme",
    project_id: int = 1,
    models: list[str] | None = None,
    expires_at: datetime | None = None,
    limits: tuple[Any, ...] = NOLIMITS,
) -> Any:
    return (public_id, digest, of, project_id, models or [], "standard", expires_at, *limits)


def keyring(*keys: Any, tenants: list[Any] | None = None, projects: list[Any] | None = None) -> Keyring:
    ring = Keyring()
    ring.load("tenants_tenant", tenants or [tenant()])
    ring.load("tenants_project", projects or [project()])
    ring.load("tenants_apikey", keys or [key()])
    return ring


def found(ring: Keyring, digest: bytes = b"d1") -> Principal:
    principal = ring.find(digest)
    assert principal is not None
    return principal


def test_it_finds_a_key_by_its_digest_alone() -> None:
    ring = keyring(key("alice", b"d1", models=["m"]), key("bob", memoryview(b"d2")))  # type: ignore[arg-type]
    alice = found(ring)
    assert (alice.tenant, alice.project, alice.key, alice.currency) == ("acme", "app", "alice", "EUR")
    assert (alice.may_call("m"), alice.may_call("n"), alice.is_valid()) == (True, False, True)
    assert found(ring, b"d2").may_call("anything")
    assert ring.find(b"alice") is ring.find(b"") is None
    assert len(ring) == 2


def test_it_takes_every_limit_above_a_key() -> None:
    ring = keyring(
        key(limits=(10, None, None, 1, 500, None)),
        projects=[project(limits=(20, 1000, None, None, 300, 90))],
        tenants=[tenant(limits=(30, None, 2000, 5, None, 70))],
    )
    alice = found(ring)
    assert [(meter.key, meter.limit) for meter in alice.meters] == [
        ("hr:m:key:alice:requests", 10),
        ("hr:m:key:alice:concurrency", 1),
        ("hr:m:project:acme/app:requests", 20),
        ("hr:m:project:acme/app:input_tokens", 1000),
        ("hr:m:tenant:acme:requests", 30),
        ("hr:m:tenant:acme:output_tokens", 2000),
        ("hr:m:tenant:acme:concurrency", 5),
    ]
    assert (alice.max_prompt_tokens, alice.max_output_tokens) == (300, 70)
    assert found(keyring()).max_prompt_tokens is None


def test_it_takes_a_limit_of_zero_for_a_limit() -> None:
    alice = found(keyring(key(limits=(0, None, None, None, 0, None))))
    assert ([meter.limit for meter in alice.meters], alice.max_prompt_tokens) == ([0], 0)


def test_it_knows_projects_of_one_name_apart() -> None:
    ring = keyring(
        key("alice", b"d1", limits=(1, *NOLIMITS[1:])),
        key("carol", b"d2", of="globex", project_id=2),
        tenants=[tenant(), tenant("globex")],
        projects=[project(1, limits=(7, *NOLIMITS[1:])), project(2, limits=(7, *NOLIMITS[1:]))],
    )
    keys = {meter.key for digest in (b"d1", b"d2") for meter in found(ring, digest).meters}
    assert {"hr:m:project:acme/app:requests", "hr:m:project:globex/app:requests"} <= keys


def test_it_sees_every_change_above_a_key() -> None:
    ring, past = keyring(), datetime.now(UTC) - timedelta(seconds=1)
    assert found(ring).is_valid()
    changes: list[tuple[str, Any, Any]] = [
        ("tenants_tenant", tenant(suspended_at=past), tenant()),
        ("tenants_apikey", key(expires_at=past), key()),
    ]
    for table, dead, alive in changes:
        ring.load(table, [dead])
        assert not found(ring).is_valid()
        ring.load(table, [alive])
        assert found(ring).is_valid()
    ring.load("tenants_project", [project(limits=(3, *NOLIMITS[1:]))])
    assert [meter.limit for meter in found(ring).meters] == [3]


def test_it_expires_a_key_by_the_clock_not_by_a_change() -> None:
    ring = keyring(key(expires_at=datetime.now(UTC) + timedelta(seconds=0.2)))
    alice = found(ring)
    assert alice.is_valid()
    time.sleep(0.25)
    assert not alice.is_valid()
    assert not found(ring).is_valid()


def test_it_forgets_keys_that_are_gone() -> None:
    ring = keyring()
    found(ring)
    ring.load("tenants_apikey", [], gone=["alice", "never was"])
    assert ring.find(b"d1") is None
    assert len(ring) == 0


def test_it_forgets_the_old_digest_of_a_key() -> None:
    ring = keyring()
    ring.load("tenants_apikey", [key(digest=b"d3")])
    assert ring.find(b"d1") is None
    assert found(ring, b"d3").key == "alice"


def test_it_follows_a_digest_from_one_key_to_another_in_any_order() -> None:
    """An operator's own secret may move to another key, in one transaction."""
    alice, bob = key("alice", b"d2"), key("bob", b"d1")
    for rows in ([alice, bob], [bob, alice]):
        ring = keyring(key("alice", b"d1"), key("bob", b"d2"))
        ring.load("tenants_apikey", rows)
        assert (found(ring, b"d1").key, found(ring, b"d2").key) == ("bob", "alice")
    for rows in ([key("alice", b"d3"), bob], [bob, key("alice", b"d3")]):
        ring = keyring(key("alice", b"d1"), key("bob", b"d2"))
        ring.load("tenants_apikey", rows)
        assert (found(ring, b"d1").key, found(ring, b"d3").key, ring.find(b"d2")) == ("bob", "alice", None)
    ring = keyring(key("alice", b"d1"))
    ring.load("tenants_apikey", [key("bob", b"d1")], gone=["alice"])
    assert found(ring, b"d1").key == "bob"


def test_it_knows_a_rotated_key_by_its_old_secret_for_a_while() -> None:
    soon, ago = datetime.now(UTC) + timedelta(hours=1), datetime.now(UTC) - timedelta(seconds=1)
    ring = keyring(key("alice", b"new"))
    ring.load("tenants_retiredsecret", [(1, memoryview(b"old"), "alice", soon), (2, b"older", "alice", ago)])
    assert found(ring, b"old").key == found(ring, b"new").key == "alice"
    assert found(ring, b"old").meters == found(ring, b"new").meters
    assert found(ring, b"old").is_valid()
    assert not found(ring, b"older").is_valid()
    assert ring.find(b"never") is None


def test_it_ends_a_retired_secret_with_its_key_or_with_its_row() -> None:
    soon, now = datetime.now(UTC) + timedelta(hours=1), datetime.now(UTC)
    ring = keyring(key("alice", b"new"))
    ring.load("tenants_retiredsecret", [(1, b"old", "alice", soon)])
    ring.load("tenants_apikey", [key("alice", b"new", expires_at=now)])
    assert not found(ring, b"old").is_valid()
    ring.load("tenants_retiredsecret", [], gone=["1"])
    assert ring.find(b"old") is None
    ring.load("tenants_retiredsecret", [(1, b"old", "alice", soon)])
    ring.load("tenants_apikey", [], gone=["alice"])
    assert ring.find(b"old") is None


def test_it_adds_the_limits_of_a_model_for_that_model_alone() -> None:
    ring = keyring(key(limits=(9, None, None, None, 500, None)))
    only_requests, both, sizes = (4, *(None,) * 5), (None, None, None, 2, 100, 50), (None, None, None, None, 900, 10)
    ring.load(
        "tenants_modellimits",
        [
            (1, "acme", "", "", "demo", *only_requests),
            (2, "acme", "app", "", "demo", *both),
            (3, "acme", "", "alice", "demo", *sizes),
            (4, "acme", "other", "", "demo", *only_requests),
            (5, "globex", "", "", "demo", *only_requests),
        ],
    )
    alice = found(ring)
    assert alice.for_model("another") is alice
    demo = alice.for_model("demo")
    assert [(meter.scope, meter.limit) for meter in demo.meters] == [("key", 9), ("model demo", 4), ("model demo", 2)]
    assert len({meter.key for meter in demo.meters}) == 3
    assert (demo.max_prompt_tokens, demo.max_output_tokens) == (100, 10)
    assert (alice.max_prompt_tokens, alice.max_output_tokens) == (500, None)


def test_a_change_costs_nobody_but_those_it_concerns() -> None:
    """Principals are made on first use: those that are the same object were not made again."""
    keys = {
        b"a1": key("alice", b"a1"),
        b"a2": key("anton", b"a2", project_id=2),
        b"c1": key("carol", b"c1", of="globex", project_id=3),
    }
    everybody = set(keys)
    ring = keyring(
        *keys.values(),
        tenants=[tenant(), tenant("globex")],
        projects=[project(1, "app"), project(2, "web"), project(3, "app")],
    )
    of_acme, of_web, of_anton = ("acme", "", ""), ("acme", "web", ""), ("acme", "", "anton")
    changes: list[tuple[str, Any, set[bytes]]] = [
        ("tenants_apikey", key("alice", b"a1", models=["m"]), {b"a1"}),
        ("tenants_apikey", key("new", b"n", of="globex", project_id=3), set()),
        ("tenants_tenant", tenant("acme"), {b"a1", b"a2"}),
        ("tenants_project", project(2, "web"), {b"a2"}),
        ("tenants_modellimits", (1, *of_acme, "demo", 4, *NOLIMITS[1:]), {b"a1", b"a2"}),
        ("tenants_modellimits", (2, *of_web, "demo", 3, *NOLIMITS[1:]), {b"a1", b"a2"}),
        ("tenants_modellimits", (3, *of_anton, "demo", 2, *NOLIMITS[1:]), {b"a2"}),
        ("tenants_retiredsecret", (1, b"old", "carol", datetime.now(UTC)), set()),
    ]
    for table, row, concerned in changes:
        before = {digest: found(ring, digest) for digest in everybody}
        ring.load(table, [row])
        assert {digest for digest in everybody if found(ring, digest) is not before[digest]} == concerned, row
    assert [meter.limit for meter in found(ring, b"a2").for_model("demo").meters] == [4, 3, 2]
    ring.load("tenants_modellimits", [(2, "acme", "app", "", "demo", 1, *NOLIMITS[1:])], gone=["3"])
    assert [meter.limit for meter in found(ring, b"a2").for_model("demo").meters] == [4]
    assert [meter.limit for meter in found(ring, b"a1").for_model("demo").meters] == [4, 1]


def test_nothing_is_kept_of_a_key_that_is_gone() -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    ring = keyring()
    before = {name: len(value) for name, value in vars(ring).items() if name != "_rows"}
    for number in range(20):
        name, digest = f"key{number}", b"d%d" % (number + 10)
        ring.load("tenants_apikey", [key(name, digest)])
        ring.load("tenants_retiredsecret", [(number, b"r%d" % number, name, soon)])
        assert found(ring, digest).key == found(ring, b"r%d" % number).key == name
        ring.load("tenants_apikey", [], gone=[name])
        assert ring.find(digest) is ring.find(b"r%d" % number) is None
    assert {name: len(value) for name, value in vars(ring).items() if name != "_rows"} == before
    assert not ring._rows["tenants_retiredsecret"]
