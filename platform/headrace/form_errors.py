"""What a verb refuses, shown as errors of the form that asked for it."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import IntegrityError, router, transaction
from django.forms import BaseForm

from headrace_core.writes import InvalidWrite
from tenants.models import Quota
from tenants.quotas import refusal


@contextmanager
def invalid_to(form: BaseForm) -> Iterator[None]:
    """An InvalidWrite within is an error of its field, or of the form where it has no such field."""
    try:
        yield
    except InvalidWrite as invalid:
        for name, texts in invalid.errors.items():
            form.add_error(name if name in form.fields else None, list(texts))


@contextmanager
def refusals_to(form: BaseForm) -> Iterator[None]:
    """What is written within, in a savepoint, may be refused by a rule or for a quota: that is the form's error."""
    try:
        with invalid_to(form), transaction.atomic(using=router.db_for_write(Quota)):
            yield
    except IntegrityError as error:
        said = refusal(error)
        if said is None:
            raise
        form.add_error(None, said)
