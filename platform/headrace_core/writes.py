"""What the verbs of every domain share: one transaction each, the check of a row, and one family of errors.

A verb is a keyword-only function of a domain module that changes rows. Portal, console, `apply` and tests call it.

    WriteError      nothing was written; the text says why, in words for people
      InvalidWrite  a value is not allowed; `errors` has the texts by field
      Overtaken     the row is not as the caller saw it: somebody else was quicker

What a verb cannot tell without asking for it (a name that is taken, a quota) the database refuses, as IntegrityError;
`tenants.quotas.refusal` has the words.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import models, router, transaction

P = ParamSpec("P")
R = TypeVar("R")


class WriteError(Exception):
    """Nothing was written; the text says why."""


class InvalidWrite(WriteError):
    """errors: the texts by field. Those of NON_FIELD_ERRORS are about the row as a whole."""

    def __init__(self, errors: Mapping[str, Sequence[str]]) -> None:
        super().__init__(next(text for texts in errors.values() for text in texts))
        self.errors = errors


class Overtaken(WriteError):
    """Somebody else changed the row since the caller read it."""


def transactional(model: type[models.Model]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Run the verb in a transaction, or a savepoint, of the connection that rows of `model` are written through.

    Portal pages write through a connection of their own: `transaction.atomic` alone would begin one on another.
    """

    def decorate(verb: Callable[P, R]) -> Callable[P, R]:
        @wraps(verb)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            with transaction.atomic(using=router.db_for_write(model)):
                return verb(*args, **kwargs)

        return run

    return decorate


def check_row(row: models.Model, columns: Collection[str] | None = None) -> None:
    """Check `columns` (None: all) of `row` by the model's own rules; raises InvalidWrite.

    Relations, uniqueness and quotas are left to the database: this asks it nothing.
    """
    fields = row._meta.concrete_fields
    exclude = {f.name for f in fields if f.is_relation or (columns is not None and f.name not in columns)}
    try:
        row.clean_fields(exclude)
        row.clean()
    except ValidationError as error:
        raise InvalidWrite(ValidationError(error.update_error_dict({})).message_dict) from error


def check_names(given: Collection[str], allowed: Collection[str]) -> None:
    """Raise TypeError for columns that a verb does not write: a caller's mistake, never a person's."""
    if unknown := sorted(set(given) - set(allowed)):
        raise TypeError(f"not to be written here: {', '.join(unknown)}")


__all__ = [
    "NON_FIELD_ERRORS",
    "InvalidWrite",
    "Overtaken",
    "WriteError",
    "check_names",
    "check_row",
    "transactional",
]
