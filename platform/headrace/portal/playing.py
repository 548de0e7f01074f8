"""The playground's keys: one for each member and project, good for a quarter of an hour, renewed while it is used."""

from datetime import timedelta

from django.contrib.auth.models import User
from django.utils import timezone

from tenants.api_keys import NotRotated, change_key, issue_key, rotate_key
from tenants.models import ApiKey, Project

LIFE = timedelta(minutes=15)
AT_ONCE = 4


def playground_key(project: Project, user: User) -> tuple[ApiKey, str]:
    """A key and its text. Another tab's goes on for its own quarter of an hour."""
    name = f"playground of {user.get_username()}"[:90]
    until = timezone.now() + LIFE
    for attempt in range(10):  # one that was revoked stays so: the next is another
        key = ApiKey.objects.filter(project=project, name=_numbered(name, attempt)).first()
        if key is None:
            issued = issue_key(project=project, name=_numbered(name, attempt), expires_at=until, concurrency=AT_ONCE)
            return issued.key, issued.text
        if not key.is_revoked:
            change_key(key=key, expires_at=until)
            return key, rotate_key(key=key, hint=key.hint, overlap=LIFE)
    raise NotRotated


def _numbered(name: str, attempt: int) -> str:
    return f"{name} {attempt + 1}" if attempt else name
