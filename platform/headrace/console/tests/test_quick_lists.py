"""The operators' lists with what makes them fast: no row lacks anything, and none names all tenants."""

import re

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse
from unfold.templatetags import unfold_list

from headrace.apply.tests.documents import EVERYTHING, apply
from tenants.models import ApiKey, Tenant

pytestmark = pytest.mark.django_db

KEYS = "admin:tenants_apikey_changelist"


@pytest.fixture(autouse=True)
def installation() -> None:
    apply(EVERYTHING)


def boxes(page: str) -> set[str]:
    return {
        value
        for box in re.findall(r"<input[^>]*_selected_action[^>]*>", page)
        for value in re.findall(r'value="([^"]*)"', box)
    }


def test_it_gives_each_row_a_box_of_its_own(alice: Client) -> None:
    page = alice.get(reverse(KEYS)).content.decode()
    assert boxes(page) == {str(key.pk) for key in ApiKey.objects.all()}
    assert 'aria-label="Select record"' in page


def test_it_escapes_a_rows_key_in_its_box(alice: Client) -> None:
    page = admin.site.get_model_admin(Tenant)
    assert 'value="a&quot;&gt;&lt;b"' in page.action_checkbox(Tenant(slug='a"><b'))


def test_it_makes_a_lists_headings_once(alice: Client) -> None:
    changes = alice.get(reverse(KEYS)).context["cl"]
    assert unfold_list.result_headers(changes) is unfold_list.result_headers(changes)
    assert [each["text"] for each in changes.headings[1:3]] == ["name", "project"]


def test_it_looks_tenants_up_instead_of_listing_them_all(alice: Client) -> None:
    for number in range(30):
        Tenant.objects.create(slug=f"many-{number}", name="Many", currency="EUR")
    key = ApiKey.objects.select_related("tenant").order_by("pk")[0]
    for name in (KEYS, "admin:tenants_project_changelist", "admin:billing_budget_changelist"):
        page = alice.get(reverse(name), {"tenant__slug__exact": key.tenant.slug}).content.decode()
        assert f'<option value="{key.tenant.slug}" selected>' in page, name
        assert "many-7" not in page, name
    assert key.pk in boxes(alice.get(reverse(KEYS), {"tenant__slug__exact": key.tenant.slug}).content.decode())
    assert not boxes(alice.get(reverse(KEYS), {"tenant__slug__exact": "many-7"}).content.decode())


def test_it_counts_a_tenants_projects_and_keys_each_by_itself(alice: Client) -> None:
    Tenant.objects.create(slug="empty", name="Empty", currency="EUR")
    rows = alice.get(reverse("admin:tenants_tenant_changelist")).context["cl"].result_list
    assert {row.pk: (row.n_projects, row.n_keys) for row in rows} == {
        tenant.pk: (tenant.projects.count(), tenant.keys.count()) for tenant in Tenant.objects.all()
    }
    assert alice.get(reverse("admin:tenants_tenant_changelist"), {"o": "-8"}).status_code == 200  # by the keys
    for project in alice.get(reverse("admin:tenants_project_changelist")).context["cl"].result_list:
        assert project.n_keys == project.keys.count()


def test_it_gives_equal_words_the_colour_that_their_list_says() -> None:
    red, green = (unfold_list.display_for_label("late", "-", {"late": colour}) for colour in ("danger", "success"))
    assert "bg-red-100" in red
    assert "bg-green-100" in green
    assert "&lt;b&gt;" in unfold_list.display_for_label("<b>", "-", {})


def test_it_marks_the_page_shown_in_the_sidebar(alice: Client) -> None:
    for name in ("admin:index", KEYS, "costs:page"):
        page = alice.get(reverse(name)).content.decode()
        marked = re.findall(r'<a href="([^"]*)" class="[^"]* active">', page)
        assert marked == [reverse(name)]
