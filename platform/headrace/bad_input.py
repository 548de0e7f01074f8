"""What an address or a form of the admin says and no row can hold: a 400, not a fault of ours.

Django's admin checks an object's id in the path. What else it is given (rows ticked in a list, the proposal for a field
of a form, the field by which a window is opened) it hands to the database layer as it is, which raises.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from django.core.exceptions import BadRequest
from django.http import HttpRequest, QueryDict

# The functions of Django's that turn a value into what a column can hold, or a name into a field.
_CONVERSIONS = frozenset({"get_prep_value", "to_python", "get_field"})


@contextmanager
def refused_as_bad(request: HttpRequest) -> Iterator[None]:
    """Raise BadRequest for a NUL, which no text in PostgreSQL holds, and where a conversion of Django's fails."""
    if "\x00" in request.path or any(_holds_nul(values) for values in (request.GET, request.POST)):
        raise BadRequest("a NUL")
    try:
        yield
    except Exception as error:
        if _is_conversion(error.__traceback__):
            raise BadRequest(str(error)) from error
        raise


def _holds_nul(values: QueryDict) -> bool:
    return any("\x00" in text for name, found in values.lists() for text in (name, *found))


def _is_conversion(traceback: TracebackType | None) -> bool:
    if traceback is None:
        return False
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    code = traceback.tb_frame.f_code
    return code.co_name in _CONVERSIONS and "/django/db/models/" in code.co_filename.replace("\\", "/")
