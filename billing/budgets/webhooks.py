"""Add, change, remove and test webhooks: where a tenant's alerts are posted to."""

import secrets
from dataclasses import dataclass
from typing import TypedDict, Unpack

from billing.budgets.outgoing import NotAllowed, check_url
from billing.models import Delivery, Notice, WebhookEndpoint
from headrace_core import sealing
from headrace_core.writes import InvalidWrite, check_names, check_row, transactional


class WebhookChanges(TypedDict, total=False):
    url: str
    enabled: bool


@dataclass(frozen=True, slots=True, repr=False)
class AddedWebhook:
    """A new webhook. `secret` signs what is posted there: show it once, it is stored sealed."""

    webhook: WebhookEndpoint
    secret: str


@transactional(WebhookEndpoint)
def add_webhook(*, tenant: str, url: str, enabled: bool = True) -> AddedWebhook:
    """Post the tenant's alerts to `url` as well.

    Raises InvalidWrite. The database refuses an address that is told already, and one webhook too many.
    """
    check_address(url=url)
    secret = secrets.token_urlsafe(32)
    webhook = WebhookEndpoint(tenant_id=tenant, url=url, enabled=enabled, secret=sealing.seal(secret))
    check_row(webhook)
    webhook.save(force_insert=True)
    return AddedWebhook(webhook, secret)


@transactional(WebhookEndpoint)
def change_webhook(*, webhook: WebhookEndpoint, **changes: Unpack[WebhookChanges]) -> None:
    """Post elsewhere, or pause (enabled=False) and go on. What waits meanwhile is kept. Raises InvalidWrite."""
    check_names(changes, WebhookChanges.__annotations__)
    if "url" in changes:
        check_address(url=changes["url"])
    for name, value in changes.items():
        setattr(webhook, name, value)
    check_row(webhook, changes)
    webhook.save(update_fields=list(changes))


@transactional(WebhookEndpoint)
def remove_webhook(*, webhook: WebhookEndpoint) -> None:
    """Remove the webhook, and what was sent there with it."""
    webhook.delete()


@transactional(WebhookEndpoint)
def send_test(*, webhook: WebhookEndpoint) -> bool:
    """Put a test on its way, as an alert would go. False if one is on its way already."""
    if Notice.objects.filter(endpoint=webhook, alert=None, state=Delivery.WAITING).exists():
        return False
    Notice.objects.bulk_create([Notice(tenant_id=webhook.tenant_id, endpoint=webhook)], ignore_conflicts=True)
    return True


def check_address(*, url: str) -> None:
    """Raise InvalidWrite for an address that may not be posted to, as far as it can be told without the network."""
    try:
        check_url(url)
    except NotAllowed as error:
        text = str(error)
        raise InvalidWrite({"url": [f"{text[:1].upper()}{text[1:]}."]}) from error
