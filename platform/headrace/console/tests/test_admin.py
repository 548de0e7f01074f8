"""The operators' admin: every page opens, every write is attributed, and no secret is shown twice."""

import html
import re

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from django.utils.text import capfirst

from billing.drain import drain_all
from billing.models import DeadLetter, Price, UsageHour, UsageRecord
from billing.tests.stream import append, connect, usage_event
from engines.models import Pool, Provider
from headrace.apply.tests.documents import EVERYTHING, apply
from headrace.console.appearance import sidebar
from headrace_core import sealing
from headrace_dev.testing.questions import save
from routing.models import TIMEOUT_FIELDS, Model, Route, Target
from tenants import keys
from tenants.models import ApiKey, AuditEntry, Project, Tenant

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def installation() -> None:
    apply(EVERYTHING)
    event = usage_event()
    late = event | {"part": 1, "cached_input_tokens": 0, "reasoning_tokens": 0, "cost": None, "cost_nano": None}
    with connect() as client:
        append(client, event, late, usage_event(cost=None, cost_nano=None, ttft_ms=None), b"bad")
        drain_all(client)


def management(prefix: str, existing: int) -> dict[str, str]:
    return {f"{prefix}-TOTAL_FORMS": str(existing), f"{prefix}-INITIAL_FORMS": str(existing)}


def test_it_sends_strangers_to_the_login(client: Client) -> None:
    assert client.get("/admin/").headers["Location"] == "/admin/login/?next=/admin/"


def test_it_opens_every_list_and_every_page(alice: Client) -> None:
    for model, page in admin.site._registry.items():
        name = f"admin:{model._meta.db_table}"
        answer = alice.get(reverse(f"{name}_changelist"))
        assert answer.status_code == 200, name
        adding = alice.get(reverse(f"{name}_add")).status_code
        assert adding == (200 if page.has_add_permission(answer.wsgi_request) else 403), name
        for row in model._default_manager.all()[:2]:
            assert alice.get(reverse(f"{name}_change", args=[row.pk])).status_code == 200, (name, row)
    assert alice.get("/admin/").status_code == 200


def test_it_opens_with_nothing_in_it(alice: Client) -> None:
    for model in (Target, Route, Model, ApiKey, DeadLetter):
        model._default_manager.all().delete()
    assert "Replicas enabled" in alice.get("/admin/").content.decode()
    assert alice.get(reverse("admin:tenants_apikey_changelist")).status_code == 200


def test_it_mints_a_key_and_shows_it_once(alice: Client) -> None:
    project = Project.objects.get(slug="web")
    form = {"project": project.pk, "name": "ci", "models": ["demo"], "priority": "standard", "concurrency": "5"}
    answer = alice.post(reverse("admin:tenants_apikey_add"), form)
    text = re.search(r"sk-hr-[0-9A-Za-z]{61}", answer.content.decode())
    assert text is not None
    key = ApiKey.objects.get(digest=keys.digest(text[0]))
    assert (key.name, key.tenant_id, key.models, key.concurrency) == ("ci", "acme", ["demo"], 5)
    assert "no-store" in answer.headers["Cache-Control"]
    for page in (reverse("admin:tenants_apikey_change", args=[key.pk]), reverse("admin:tenants_apikey_changelist")):
        assert text[0] not in alice.get(page).content.decode()
    kept = [*LogEntry.objects.values(), *AuditEntry.objects.values(), alice.cookies.output(), dict(alice.session)]
    assert text[0] not in str(kept)


@pytest.mark.parametrize(
    "changes",
    [
        {"name": ""},
        {"name": "key-1"},
        {"project": ""},
        {"models": ["nowhere"]},
        {"concurrency": "-1"},
        {"priority": "x"},
    ],
    ids=str,
)
def test_it_mints_no_key_from_a_wrong_form(alice: Client, changes: dict[str, object]) -> None:
    project = Project.objects.get(slug="web")
    before = ApiKey.objects.count()
    form = {"project": project.pk, "name": "ci", "priority": "standard"} | changes
    answer = alice.post(reverse("admin:tenants_apikey_add"), form)
    assert answer.status_code == 200
    assert "sk-hr-" not in answer.content.decode()
    assert ApiKey.objects.count() == before


def test_it_changes_a_key_without_touching_its_secret_or_its_last_use(alice: Client) -> None:
    key = ApiKey.objects.get(name="nightly")
    form = {"name": "nights", "models": ["demo"], "priority": "batch", "expires_at_0": "", "expires_at_1": ""}
    assert alice.post(reverse("admin:tenants_apikey_change", args=[key.pk]), form).status_code == 302
    changed = ApiKey.objects.get(pk=key.pk)
    assert (changed.name, changed.models, changed.expires_at) == ("nights", ["demo"], None)
    assert bytes(changed.digest) == bytes(key.digest)


def test_it_revokes_keys_from_the_list_and_from_the_keys_own_page(alice: Client) -> None:
    first, second = ApiKey.objects.filter(tenant="acme")
    said = {"action": "revoke", "_selected_action": [first.pk]}
    assert "cannot be undone" in alice.post(reverse("admin:tenants_apikey_changelist"), said).content.decode()
    assert not ApiKey.objects.get(pk=first.pk).is_revoked
    alice.post(reverse("admin:tenants_apikey_changelist"), said | {"sure": "yes"})
    page = reverse("admin:tenants_apikey_change", args=[second.pk]).removesuffix("change/") + "revoke/"
    assert alice.get(page).status_code == 200
    assert not ApiKey.objects.get(pk=second.pk).is_revoked  # asking is not doing
    assert alice.post(page, {"_form_submitted": "True"}).headers["HX-Refresh"] == "true"
    assert {key.is_revoked for key in ApiKey.objects.filter(tenant="acme")} == {True}


def test_it_undoes_a_write_that_fails_half_way(alice: Client) -> None:
    """The attributed transaction is the whole request: nothing of a failed one stays."""
    pool = Pool.objects.get()
    form = {"engine": "vllm", "model": "other", "gpu_hour_cost": "1", "gpus_per_replica": "1"}
    form |= management("replicas", 1) | {"replicas-0-id": "999999", "replicas-0-pool": pool.pk}
    assert alice.post(reverse("admin:engines_pool_change", args=["local"]), form).status_code == 200
    assert Pool.objects.get().engine == "llamacpp"


def test_it_takes_a_providers_secret_and_never_shows_it(alice: Client) -> None:
    page = reverse("admin:engines_provider_change", args=["hosted"])
    form = {"protocol": "openai", "base_url": "https://api.example.com/v2", "new_api_key": ""}
    save(alice, page, form)
    assert sealing.open(Provider.objects.get().api_key or b"") == "the provider's secret"
    save(alice, page, form | {"new_api_key": "a better secret"})
    assert sealing.open(Provider.objects.get().api_key or b"") == "a better secret"
    shown = alice.get(page).content.decode()
    assert "a better secret" not in shown
    assert "One is stored. Empty: keep it." in shown
    save(alice, page, form | {"clear_api_key": "on"})
    assert Provider.objects.get().api_key is None
    assert "secret" not in str(AuditEntry.objects.filter(action="changed").values_list("before", "after"))


def route_form(model: str) -> dict[str, object]:
    route = Route.objects.get(model=model)
    form = {
        name: getattr(route, name)
        for name in ("policy", "cache_scope", "unknown_fields", "queue_timeout", "queue_length")
    }
    return form | dict.fromkeys(TIMEOUT_FIELDS, "5")


def test_it_gives_a_new_model_its_route_and_orders_targets(alice: Client) -> None:
    alice.post(
        reverse("admin:routing_model_add"),
        {"name": "new/one", "enabled": "on", "context_window": "4096", "default_max_tokens": "512"},
    )
    assert Route.objects.get(model="new/one").targets.count() == 0
    first, second = Target.objects.filter(route="demo")
    form = route_form("demo") | management("targets", 2)
    for index, (target, position) in enumerate([(first, 1), (second, 0)]):
        row = {"id": target.pk, "route": "demo", "pool": target.pool_id or "", "provider": target.provider_id or ""}
        row |= {"upstream_model": target.upstream_model, "position": position, "context_window": 4096 + index}
        form |= {f"targets-{index}-{name}": value for name, value in row.items()}
    answer = save(alice, reverse("admin:routing_route_change", args=["demo"]), form)
    assert answer.status_code == 302, html.unescape(answer.content.decode())
    targets = [(target.slug, target.context_window) for target in Target.objects.filter(route="demo")]
    assert targets == [("hosted", 4097), ("local", 4096)]


@pytest.mark.parametrize(("model", "count"), [("org/other-1.5", 0), ("demo", 2)])
def test_it_adds_targets_after_the_others_where_none_was_dragged(alice: Client, model: str, count: int) -> None:
    """The page leaves the hidden position of an added row empty."""
    existing = list(Target.objects.filter(route=model))
    assert len(existing) == count
    form = route_form(model) | management("targets", count) | {"targets-TOTAL_FORMS": count + 2}
    for index in range(count + 2):
        old = existing[index] if index < count else None
        row: dict[str, object] = {"id": "", "route": model, "pool": "", "provider": "hosted", "upstream_model": index}
        row["position"] = ""
        if old:
            row |= {"id": old.pk, "pool": old.pool_id or "", "provider": old.provider_id or ""}
            row |= {"position": old.position, "upstream_model": old.upstream_model}
        form |= {f"targets-{index}-{name}": value for name, value in row.items()}
    answer = save(alice, reverse("admin:routing_route_change", args=[model]), form)
    assert answer.status_code == 302, html.unescape(answer.content.decode())
    targets = list(Target.objects.filter(route=model))
    assert [target.position for target in targets] == list(range(count + 2))
    assert [target.pk for target in targets[:count]] == [target.pk for target in existing]
    assert [target.upstream_model for target in targets[count:]] == [str(count), str(count + 1)]


def test_it_counts_what_is_enabled_and_claims_no_health(alice: Client) -> None:
    overview = alice.get("/admin/").content.decode()
    assert "Replicas enabled" in overview
    assert "2 models, 2 tenants" in overview
    Model.objects.filter(name="demo").update(enabled=False)
    assert "1 model, 2 tenants" in alice.get("/admin/").content.decode()
    assert "1 of 2" in alice.get(reverse("admin:engines_pool_changelist")).content.decode()


@pytest.mark.parametrize(
    ("cost", "gpus", "shown"),
    [
        ("2.5", "1", ("2.50 USD", "1")),
        ("1200", "10", ("1,200.00 USD", "10")),
        ("0.123456", "0.5", ("0.123456 USD", "0.5")),
    ],
)
def test_it_shows_a_pools_cost_without_idle_zeros(alice: Client, cost: str, gpus: str, shown: tuple[str, str]) -> None:
    Pool.objects.update(gpu_hour_cost=cost, gpus_per_replica=gpus)
    page = admin.site._registry[Pool]
    pool = Pool.objects.get()
    assert (page.hour_cost(pool), page.gpus(pool)) == shown  # type: ignore[attr-defined]
    listed = re.sub(r"\s", "", alice.get(reverse("admin:engines_pool_changelist")).content.decode())
    assert f">{shown[0].replace(' ', '')}<" in listed


def test_it_lists_keys_by_the_id_that_records_show(alice: Client) -> None:
    shown = alice.get(reverse("admin:tenants_apikey_changelist")).content.decode()
    for key in ApiKey.objects.all():
        assert f"{key.public_id} \u2026{key.hint}" in shown


@pytest.mark.parametrize(
    ("requests", "unpriced", "cost", "shown"),
    [(2, 2, 0, "unpriced"), (2, 1, 0, "0.000000"), (2, 0, 0, "0.000000"), (2, 1, 3, "3.000000"), (0, 0, 0, "0.000000")],
)
def test_it_shows_an_hour_without_any_price_as_unpriced(
    alice: Client, requests: int, unpriced: int, cost: int, shown: str
) -> None:
    UsageHour.objects.update(requests=requests, unpriced=unpriced, cost=cost)
    hour = UsageHour.objects.all()[0]
    page = admin.site._registry[UsageHour]
    assert f">{shown}" in page.amount(hour)  # type: ignore[attr-defined]
    assert "field-target" in alice.get(reverse("admin:billing_usagehour_changelist")).content.decode()


def test_it_names_pages_as_the_sidebar_does(alice: Client) -> None:
    groups = sidebar(alice.get("/admin/").wsgi_request)
    names = {str(item["link"]): item["title"] for group in groups for item in group["items"]}
    for model in admin.site._registry:
        link = reverse(f"admin:{model._meta.db_table}_changelist")
        assert capfirst(model._meta.verbose_name_plural) == names[link]


def test_it_refuses_an_address_that_another_replica_has(alice: Client) -> None:
    form = {"name": "second", "engine": "sglang", "model": "m", "gpu_hour_cost": "0", "gpus_per_replica": "1"}
    form |= {"replicas-TOTAL_FORMS": "1", "replicas-INITIAL_FORMS": "0"}
    form |= {"replicas-0-name": "r", "replicas-0-url": "http://127.0.0.1:9001", "replicas-0-enabled": "on"}
    answer = alice.post(reverse("admin:engines_pool_add"), form)
    assert answer.status_code == 200
    assert not Pool.objects.filter(name="second").exists()


def test_it_changes_nothing_in_the_ledger_by_hand(alice: Client) -> None:
    record = UsageRecord.objects.all()[0]
    page = reverse("admin:billing_usagerecord_change", args=[record.pk])
    assert alice.post(page, {"output_tokens": "1"}).status_code == 403
    assert alice.post(reverse("admin:billing_usagerecord_delete", args=[record.pk]), {"post": "yes"}).status_code == 403


def test_it_finds_a_record_by_its_id_and_filters_exactly(alice: Client) -> None:
    record = UsageRecord.objects.all()[0]
    page = reverse("admin:billing_usagerecord_changelist")
    link = reverse("admin:billing_usagerecord_change", args=[record.pk])
    for query in (f"q=chatcmpl-{record.pk}", f"q={record.pk}", "tenant=acme", "model=demo&status__exact=ok"):
        assert link in alice.get(f"{page}?{query}").content.decode(), query
    for query in ("q=nothing", "tenant=acm", f"q={keys.mint().public_id}", "p=999999"):
        assert link not in alice.get(f"{page}?{query}").content.decode(), query


def test_it_counts_no_rows_to_show_a_page_of_records(alice: Client) -> None:
    with CaptureQueriesContext(connection) as captured:
        alice.get(reverse("admin:billing_usagerecord_changelist"))
    statements = [query["sql"] for query in captured if "billing_usagerecord" in query["sql"]]
    assert len(statements) == 1
    assert "COUNT(" not in statements[0]
    assert "LIMIT 26" in statements[0]


def test_it_shows_unpriced_and_unknown_as_such(alice: Client) -> None:
    shown = alice.get(reverse("admin:billing_usagerecord_changelist")).content.decode()
    assert "unpriced" in shown
    assert "1 request unpriced" in alice.get("/admin/").content.decode()


def test_it_replays_dead_letters(alice: Client) -> None:
    letter, page = DeadLetter.objects.get(), reverse("admin:billing_deadletter_changelist")
    said = {"action": "replay", "_selected_action": [letter.pk]}
    assert "charged to its tenant" in alice.post(page, said).content.decode()
    assert DeadLetter.objects.get().replayed_at is None
    alice.post(page, said | {"sure": "yes"})
    assert DeadLetter.objects.get().replayed_at is not None
    entry = AuditEntry.objects.filter(subject__startswith="billing_deadletter")[0]
    assert (entry.who, entry.action, list(entry.after or {})) == ("alice-the-operator", "changed", ["replayed_at"])
    with connect() as client:
        assert client.xlen("hr:usage") == 1


def test_it_shows_staff_what_they_may_see_and_no_more() -> None:
    bob = User.objects.create_user("bob", is_staff=True)
    bob.user_permissions.add(Permission.objects.get(codename="view_tenant"))
    client = Client()
    client.force_login(bob)
    assert client.get(reverse("admin:tenants_tenant_changelist")).status_code == 200
    for name in ("tenants_apikey", "engines_provider", "billing_usagerecord", "auth_user"):
        assert client.get(reverse(f"admin:{name}_changelist")).status_code == 403
    answer = client.post(
        reverse("admin:tenants_tenant_changelist"), {"action": "suspend", "sure": "yes", "_selected_action": ["acme"]}
    )
    assert not Tenant.objects.get(slug="acme").is_suspended, answer.status_code
    assert reverse("admin:tenants_apikey_changelist") not in client.get("/admin/").content.decode()


def test_it_wants_a_token_against_forged_requests() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_superuser("alice"))
    page = reverse("admin:tenants_tenant_changelist")
    assert client.post(page, {"action": "suspend", "_selected_action": ["acme"]}).status_code == 403


def test_a_price_in_force_is_shown_and_one_to_come_may_be_changed(alice: Client) -> None:
    for price in Price.objects.all():
        page = reverse("admin:billing_price_change", args=[price.pk])
        is_open = b'name="_save"' in alice.get(page).content
        assert is_open is not price.is_in_force, price
    shown = alice.get(reverse("admin:billing_price_changelist")).content.decode()
    assert re.findall(r"in force|to come|superseded", shown.lower()).count("to come") == 1


def test_a_small_cost_is_not_shown_as_nothing(alice: Client) -> None:
    assert "&lt; 0.01 EUR" in alice.get(reverse("admin:index")).content.decode()


def test_it_shows_a_currency_that_is_fixed_by_use_as_such(alice: Client) -> None:
    tenant = ApiKey.objects.filter(last_used_at=None).values_list("tenant", flat=True)[0]
    page = reverse("admin:tenants_tenant_change", args=[tenant])
    assert 'name="currency"' in alice.get(page).content.decode()
    ApiKey.objects.filter(tenant=tenant).update(last_used_at=timezone.now())
    assert 'name="currency"' not in alice.get(page).content.decode()
