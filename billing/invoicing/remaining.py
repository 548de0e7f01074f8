"""What credits have left for coming invoices."""

from decimal import Decimal

from django.db.models import F, Q, QuerySet, Sum

from billing.models import Credit, Invoice


def with_remaining(credits: QuerySet[Credit]) -> list[tuple[Credit, Decimal]]:
    """Each with its `remaining`, in one question for all of them."""
    issued = Q(lines__invoice__status=Invoice.Status.FINALISED)
    rows = credits.annotate(left=F("amount") + Sum("lines__amount", filter=issued, default=Decimal(0)))
    return [(credit, credit.left) for credit in rows]
