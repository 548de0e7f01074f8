"""Time zones by their IANA name: those that Python and PostgreSQL both know."""

from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.core.exceptions import ValidationError
from django.db import connection

# Files beside the list: the machine's own zone, zones with leap seconds, zic's placeholder.
_NO_NAMES = {"localtime", "posixrules", "Factory"}
_NO_FOLDERS = ("posix/", "right/")
_UTC = ZoneInfo("UTC")


def check_time_zone(name: str) -> None:
    """Refuse what is no name of the IANA list, or one that only Python or only PostgreSQL knows.

    The database refuses, besides, what PostgreSQL does not know.
    """
    if not is_listed(name) or not _is_known_to_postgres(name):
        raise ValidationError(
            "%(name)s is not a time zone of the IANA list, such as Europe/Berlin", "time_zone", {"name": name}
        )


def is_listed(name: str) -> bool:
    """Whether Python's copy of the list has the name."""
    return name not in _NO_NAMES and not name.startswith(_NO_FOLDERS) and _read(name) is not None


def zone_named(name: str) -> ZoneInfo:
    """The zone of a stored name; UTC for one that this machine's list lacks, so that no page or sum fails for it."""
    return _read(name) or _UTC


@lru_cache(maxsize=1024)
def _read(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


@lru_cache(maxsize=1024)
def _is_known_to_postgres(name: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT headrace_knows_zone(%s)", [name])
        return bool(cursor.fetchone()[0])
