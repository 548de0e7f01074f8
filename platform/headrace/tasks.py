"""Celery's shells, beside billing's: each may run twice, at once, and on any machine."""

from celery import shared_task

from headrace.portal import forgetting


@shared_task(name="portal.forget_sessions")  # type: ignore[untyped-decorator]
def forget_sessions() -> None:
    forgetting.forget_sessions()
