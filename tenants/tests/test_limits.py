"""Limits are set by one verb, for whomever they hold."""

import pytest
from django.db import IntegrityError
from django.utils import timezone

from headrace_core.writes import InvalidWrite
from tenants.limits import add_model_limits, remove_model_limits, set_limits
from tenants.models import ApiKey, ModelLimits
from tenants.tests.cast import make_key, make_project, make_tenant

pytestmark = pytest.mark.django_db


def test_limits_are_set_for_a_tenant_a_project_a_key_and_a_model() -> None:
    tenant = make_tenant()
    project = make_project(tenant)
    key = make_key(project)
    of_model = add_model_limits(tenant="acme", key=key.pk, model="demo", concurrency=9)
    for holder in (tenant, project, key, of_model):
        set_limits(holder=holder, concurrency=3, max_prompt_tokens=None)
        holder.refresh_from_db()
        assert holder.limits == {"concurrency": 3}


def test_setting_limits_leaves_other_columns_alone() -> None:
    key, used = make_key(make_project(make_tenant())), timezone.now()
    ApiKey.objects.update(last_used_at=used, name="renamed")
    set_limits(holder=key, concurrency=1)
    key.refresh_from_db()
    assert (key.name, key.last_used_at, key.concurrency) == ("renamed", used, 1)
    with pytest.raises(TypeError, match="not to be written here: name"):
        set_limits(holder=key, name="other")  # type: ignore[call-arg]


def test_a_limit_below_one_is_refused() -> None:
    tenant = make_tenant()
    with pytest.raises(InvalidWrite) as refused:
        set_limits(holder=tenant, concurrency=0)
    assert list(refused.value.errors) == ["concurrency"]
    tenant.refresh_from_db()
    assert tenant.limits == {}


def test_a_model_has_one_row_of_limits_for_each_holder() -> None:
    make_tenant()
    row = add_model_limits(tenant="acme", model="demo", concurrency=9)
    with pytest.raises(IntegrityError):
        add_model_limits(tenant="acme", model="demo", concurrency=8)
    remove_model_limits(row=row)
    assert not ModelLimits.objects.exists()
