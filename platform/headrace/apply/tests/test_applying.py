"""What `apply` writes, and that it writes it once."""

from decimal import Decimal

import pytest
from django.db import connection

from engines.models import Pool, Provider, Replica
from headrace.apply.tests.documents import EVERYTHING, apply, changes
from headrace.models import ConfigChange
from headrace_core import sealing
from routing.models import Model, Target
from tenants import keys
from tenants.models import ApiKey, AuditEntry, Member, Project, Tenant

pytestmark = pytest.mark.django_db


def test_it_writes_everything_a_document_says() -> None:
    result = apply(EVERYTHING)
    pool = Pool.objects.get()
    assert (pool.name, pool.engine, pool.gpus_per_replica) == ("local", "llamacpp", Decimal("0.5"))
    assert sealing.open(pool.api_key or b"") == "the pool's secret"
    assert list(Replica.objects.values_list("name", "url", "enabled")) == [
        ("replica-1", "http://127.0.0.1:9001", True),
        ("spare", "http://127.0.0.1:9002", False),
    ]
    demo, other = Model.objects.order_by("name")
    assert [(t.slug, t.upstream_model) for t in demo.route.targets.all()] == [
        ("local", ""),
        ("hosted", "big"),
    ]
    wanted, copied = demo.route.targets.all()
    assert (copied.shadow, wanted.weight, wanted.shadow) == (5, 3, None)
    assert str(wanted.wants) == "max_prompt_tokens=8000 modalities=text tools=no tiers=gold"
    assert (demo.route.connect_timeout, demo.route.cache_scope, demo.route.unknown_fields) == (2.5, "shared", "drop")
    assert demo.route.ignore_eos is True
    assert demo.route.policy == "least_loaded"
    assert (other.default_max_tokens, other.route.total_timeout, other.route.targets.count()) == (500, 600, 0)
    acme, globex = Tenant.objects.order_by("slug")
    assert (acme.name, acme.time_zone, acme.limits) == (
        "Acme & Söhne",
        "Asia/Kolkata",
        {"requests_per_minute": 600, "concurrency": 10},
    )
    assert (globex.name, globex.currency, globex.time_zone) == ("globex", "USD", "UTC")
    assert Project.objects.get(slug="web").limits == {"output_tokens_per_minute": 1000}
    assert set(Member.objects.values_list("user__email", "role")) == {
        ("alice@acme.test", "owner"),
        ("bob@acme.test", "developer"),
        ("carol@globex.test", "admin"),
    }
    assert [minted.label for minted in result.minted] == ["key acme/web/key-1", "key globex/main/app"]
    assert ApiKey.objects.get(digest=keys.digest(result.minted[0].text)).models == ["demo", "org/other-1.5"]
    assert ApiKey.objects.get(digest=keys.digest("an-operators-own-secret-0001")).name == "nightly"


def test_it_changes_nothing_the_second_time() -> None:
    apply(EVERYTHING)
    before = ConfigChange.objects.count()
    result = apply(EVERYTHING)
    assert (result.changes, result.minted) == ([], [])
    assert ConfigChange.objects.count() == before


def test_it_writes_nothing_on_a_dry_run_and_says_the_same() -> None:
    planned = apply(EVERYTHING, dry_run=True)
    assert planned.minted == []
    assert not Tenant.objects.exists()
    assert not ConfigChange.objects.exists()
    assert [str(change) for change in apply(EVERYTHING).changes] == [str(change) for change in planned.changes]


def test_it_leaves_alone_what_the_document_does_not_name() -> None:
    apply(EVERYTHING)
    assert changes("tenants: {acme: {limits: {concurrency: 5}}}") == ["~ tenant acme: concurrency 10 -> 5"]
    assert changes("") == []
    assert changes("tenants: {acme: {projects: {web: }}}") == []
    assert Tenant.objects.get(slug="acme").requests_per_minute == 600
    assert (Replica.objects.count(), ApiKey.objects.count()) == (2, 3)


def test_it_lifts_a_limit_that_is_null() -> None:
    apply(EVERYTHING)
    assert changes("tenants: {acme: {limits: {concurrency: ~}}}") == ["~ tenant acme: concurrency 10 -> none"]


def test_it_replaces_the_targets_of_a_route_and_keeps_the_rows_that_stay() -> None:
    apply(EVERYTHING)
    first = Target.objects.get(position=0).pk
    text = "models: {demo: {route: {targets: [%s]}}}"
    assert changes(text % "local, local") == [
        "~ route of demo: targets "
        "local (max_prompt_tokens=8000 modalities=text tools=no tiers=gold; weight 3),"
        " hosted:big (4096 tokens; shadow 5) -> local, local"
    ]
    assert changes(text % "{provider: hosted, model: small}") == [
        "~ route of demo: targets local, local -> hosted:small"
    ]
    target = Target.objects.get()
    assert (target.pk, target.slug, target.pool_id) == (first, "hosted", None)
    assert changes(text % "") == ["~ route of demo: targets hosted:small -> none"]


@pytest.mark.django_db(transaction=True)
def test_it_exchanges_two_addresses_in_one_document() -> None:
    apply("pools: {p: {model: m, replicas: {a: 'http://one', b: 'http://two'}}}")
    apply("pools: {p: {model: m, replicas: {a: 'http://two', b: 'http://one'}}}")
    assert dict(Replica.objects.values_list("name", "url")) == {"a": "http://two", "b": "http://one"}


def test_it_suspends_and_resumes_a_tenant() -> None:
    apply("tenants: {acme: {suspended: true}}")
    suspended = Tenant.objects.get().suspended_at
    assert suspended is not None
    assert changes("tenants: {acme: {suspended: true}}") == []
    apply("tenants: {acme: {suspended: false}}")
    assert Tenant.objects.get().suspended_at is None


def test_it_revokes_a_key_for_good() -> None:
    apply(EVERYTHING)
    revoked = "tenants: {globex: {keys: {app: {revoked: true}, gone: {revoked: true}}}}"
    assert len(changes(revoked)) == 1
    assert ApiKey.objects.get(name="app").is_revoked
    assert changes(revoked) == []
    assert not ApiKey.objects.filter(name="gone").exists()


def test_it_replaces_a_chosen_secret_and_a_providers() -> None:
    apply(EVERYTHING)
    assert changes(
        "providers: {hosted: {api_key: another secret}}\n"
        "tenants: {acme: {keys: {nightly: {project: batch, secret: an-operators-own-secret-0002}}}}"
    ) == [
        "~ provider hosted: api_key (secret) -> (secret)",
        "~ key acme/batch/nightly: digest (secret) -> (secret), hint 0001 -> 0002",
    ]
    assert sealing.open(Provider.objects.get().api_key or b"") == "another secret"
    assert changes("providers: {hosted: {api_key: ~}}") == ["~ provider hosted: api_key (secret) -> none"]


def test_it_takes_secrets_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTED_KEY", "from outside")
    apply('providers: {hosted: {base_url: "https://x.test/v1", api_key: "${HOSTED_KEY}"}}')
    assert sealing.open(Provider.objects.get().api_key or b"") == "from outside"


def test_it_takes_no_line_end_for_a_part_of_a_secret() -> None:
    document = 'providers: {hosted: {base_url: "https://x.test/v1", api_key: "sk-1\\n"}}'
    apply(document)
    assert sealing.open(Provider.objects.get().api_key or b"") == "sk-1"
    assert changes(document) == []


def test_it_attributes_every_change_in_the_audit_trail_and_stores_no_secret_in_the_clear() -> None:
    result = apply(EVERYTHING)
    assert set(AuditEntry.objects.values_list("who", "origin")) == {("alice", "manage.py apply")}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT string_agg(t::text, ' ') FROM tenants_auditentry t) "
            "|| (SELECT string_agg(t::text, ' ') FROM tenants_apikey t)"
            "|| (SELECT string_agg(t::text, ' ') FROM engines_provider t)"
        )
        (stored,) = cursor.fetchone()
    for secret in [result.minted[0].text, "an-operators-own-secret-0001", "the pool's secret", "the provider's secret"]:
        assert secret not in stored
        assert secret not in str(result)
