"""Letters that the portal writes. allauth writes its own: confirmations, forgotten passwords."""

from django.core.mail import send_mail
from django.template.loader import render_to_string

from tenants.models import Invitation


def send_invitation(invitation: Invitation, link: str) -> None:
    """Raises OSError or SMTPException where the mail server does not take it."""
    text = render_to_string("portal/letters/invitation.txt", {"invitation": invitation, "link": link})
    subject = f"Join {invitation.tenant.name} on Headrace".replace("\n", " ")
    send_mail(subject, text, None, [invitation.email])
