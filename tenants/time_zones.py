"""Time zones by their IANA name."""

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.core.exceptions import ValidationError


def check_time_zone(name: str) -> None:
    """Refuse what is not an IANA name. The database refuses, besides, what PostgreSQL does not know."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValidationError(
            "%(name)s is not a time zone of the IANA list, such as Europe/Berlin", "time_zone", {"name": name}
        ) from None
