"""Sessions that are over, with what was noted of the browsers they were in: addresses are people's own."""

from datetime import datetime, timedelta

from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.utils import timezone

# A browser is noted by another statement than its session: what is newer may be half made.
_SETTLED = timedelta(days=1)


def forget_sessions(*, now: datetime | None = None) -> int:
    """Delete what has expired; how many sessions went. May be repeated, and run twice at once."""
    now = now or timezone.now()
    gone = Session.objects.filter(expire_date__lt=now).delete()[0]
    standing = Session.objects.values("session_key")
    UserSession.objects.filter(last_seen_at__lt=now - _SETTLED).exclude(session_key__in=standing).delete()
    return gone
