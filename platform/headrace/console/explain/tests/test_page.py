"""The form that explains a route: what `manage.py routes explain` says, as a page."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from engines.models import Pool, Replica
from routing.models import Model, Route, Target

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/admin/routes/explain/"


@pytest.fixture
def olga() -> Client:
    big, small = (Pool.objects.create(name=name, engine="sglang", model="m") for name in ("big", "small"))
    Replica.objects.create(pool=big, name="r0", url="http://10.0.0.1:30000")
    Replica.objects.create(pool=small, name="r0", url="http://10.0.1.1:30000")
    route = Route.objects.create(model=Model.objects.create(name="chat", context_window=100_000))
    Target.objects.create(route=route, position=0, pool=big, conditions={"min_prompt_tokens": 1000})
    Target.objects.create(route=route, position=1, pool=small)
    client = Client()
    client.force_login(User.objects.create_superuser("olga"))
    return client


def test_it_says_where_a_request_goes_and_which_condition_failed(olga: Client) -> None:
    assert 'value="chat" selected' in olga.get(f"{PAGE}?model=chat").content.decode()
    page = olga.post(PAGE, {"model": "chat", "tenant": "acme", "prompt_tokens": "20"}).content.decode()
    assert "It goes to <strong>small/r0</strong>" in page
    assert "20 tokens" in page
    assert "min_prompt_tokens" in page
    assert "explain-no" in page
    page = olga.post(PAGE, {"model": "chat", "prompt_tokens": "2000"}).content.decode()
    assert "It goes to <strong>big/r0</strong>" in page


def test_it_takes_a_chat_and_says_what_is_wrong_with_it(olga: Client) -> None:
    chat = '[{"role": "user", "content": "' + "word " * 2000 + '"}]'
    assert "big/r0</strong>" in olga.post(PAGE, {"model": "chat", "messages": chat}).content.decode()
    page = olga.post(PAGE, {"model": "chat", "messages": "{ nonsense"}).content.decode()
    assert "not JSON" in page
    assert "--messages" not in page
    assert 'role="alert"' in olga.post(PAGE, {"model": "chat", "messages": '{"messages": 7}'}).content.decode()
    assert "Select a valid choice" in olga.post(PAGE, {"model": "nothing"}).content.decode()


def test_it_is_for_operators_who_may_see_routes(olga: Client, client: Client) -> None:
    assert client.get(PAGE).status_code == 302
    sam = User.objects.create_user("sam", is_staff=True)
    client.force_login(sam)
    assert client.get(PAGE).status_code == 403
    sam.user_permissions.add(Permission.objects.get(codename="view_route"))
    client.force_login(User.objects.get(username="sam"))
    assert client.get(PAGE).status_code == 200
