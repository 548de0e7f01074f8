"""The playground's key: short-lived, one for each member and project, and renewed without ending another tab's."""

from datetime import timedelta

from django.utils import timezone

from engines.models import Pool
from headrace.portal.tests.cast import Cast, browser
from routing.models import Model, Route, Target
from tenants import keys
from tenants.api_keys import revoke_key
from tenants.models import ApiKey, RetiredSecret


def test_it_lends_one_key_and_renews_it(cast: Cast) -> None:
    bob = browser("bob")
    first = bob.post("/t/acme/playground/key/", {"project": "web"}).json()["key"]
    key = ApiKey.objects.get(name__startswith="playground")
    assert key.expires_at is not None
    assert timedelta(minutes=14) < key.expires_at - timezone.now() <= timedelta(minutes=15)
    second = bob.post("/t/acme/playground/key/", {"project": "web"}).json()["key"]
    assert keys.parse(first) == keys.parse(second) == key.pk
    assert bytes(RetiredSecret.objects.get().digest) == keys.digest(first)
    assert ApiKey.objects.filter(name__startswith="playground").count() == 1


def test_it_lends_another_where_that_one_was_revoked(cast: Cast) -> None:
    bob = browser("bob")
    bob.post("/t/acme/playground/key/", {"project": "web"})
    revoked = ApiKey.objects.get(name__startswith="playground")
    revoke_key(key=revoked)
    text = bob.post("/t/acme/playground/key/", {"project": "web"}).json()["key"]
    assert keys.parse(text) != revoked.pk


def test_it_lends_none_for_a_project_of_others(cast: Cast) -> None:
    answer = browser("bob").post("/t/acme/playground/key/", {"project": "nothing"})
    assert (answer.status_code, answer.json()) == (400, {"error": "Choose a project."})


def test_it_begins_with_a_model_that_is_served(cast: Cast) -> None:
    Model.objects.create(name="another", context_window=4096)
    bob = browser("bob")
    assert "<option selected>another</option>" in bob.get("/t/acme/playground/").content.decode()
    pool = Pool.objects.create(name="h100", engine="sglang", model="demo")
    Target.objects.create(route=Route.objects.create(model_id="demo"), position=0, pool=pool)
    assert "<option selected>demo</option>" in bob.get("/t/acme/playground/").content.decode()
