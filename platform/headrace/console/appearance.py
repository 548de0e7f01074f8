"""How the admin looks: its colour, and a sidebar of what belongs together for an operator."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from unfold.settings import CONFIG_DEFAULTS

# Water, from light to dark: sRGB of one hue.
_PRIMARY = {
    "50": "#f0f9fb",
    "100": "#d9f0f5",
    "200": "#b8e2ec",
    "300": "#86cddd",
    "400": "#4db0c7",
    "500": "#2d93ac",
    "600": "#217690",
    "700": "#205f75",
    "800": "#214f61",
    "900": "#1f4353",
    "950": "#102b37",
}
_GROUPS: dict[str, list[tuple[str, str, str]]] = {
    "": [("Overview", "dashboard", "admin:index")],
    "Tenants": [
        ("Tenants", "apartment", "tenants_tenant"),
        ("Projects", "folder", "tenants_project"),
        ("API keys", "key", "tenants_apikey"),
        ("Limits per model", "speed", "tenants_modellimits"),
        ("Members", "group", "tenants_member"),
    ],
    "Models": [
        ("Models", "deployed_code", "routing_model"),
        ("Routes", "alt_route", "routing_route"),
        ("Explain", "conversion_path", "routes:explain"),
        ("Pools", "dns", "engines_pool"),
        ("Providers", "cloud", "engines_provider"),
        ("Fleet", "monitoring", "fleet:page"),
        ("Sizing", "calculate", "sizing:page"),
    ],
    "Ledger": [
        ("Cost", "query_stats", "costs:page"),
        ("Settlement", "sync_alt", "settlement:page"),
        ("Exchange rates", "currency_exchange", "billing_exchangerate"),
        ("Records", "receipt_long", "billing_usagerecord"),
        ("Prices", "sell", "billing_price"),
        ("Hours", "bar_chart", "billing_usagehour"),
        ("Corrections", "published_with_changes", "billing_usagecorrection"),
        ("Dead letters", "mark_email_unread", "billing_deadletter"),
        ("Checks", "fact_check", "billing_ledgercheckrun"),
        ("Dropped months", "auto_delete", "billing_droppedmonth"),
    ],
    "Budgets": [
        ("Budgets", "savings", "billing_budget"),
        ("Alerts", "notifications", "billing_budgetalert"),
        ("Notices", "outbox", "billing_notice"),
        ("Webhooks", "webhook", "billing_webhookendpoint"),
        ("Adjustments", "tune", "billing_budgetadjustment"),
    ],
    "Invoices": [
        ("Invoices", "request_quote", "billing_invoice"),
        ("Billing accounts", "account_balance", "billing_billingaccount"),
        ("Credits", "redeem", "billing_credit"),
        ("Legal entities", "domain", "billing_legalentity"),
    ],
    "Platform": [
        ("Audit trail", "history", "tenants_auditentry"),
        ("Users", "person", "auth_user"),
        ("Groups", "groups", "auth_group"),
    ],
}


def colours(request: HttpRequest) -> dict[str, dict[str, str]]:
    return {**CONFIG_DEFAULTS["COLORS"], "primary": dict(_PRIMARY)}


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Of each group what the user may see. Whether it does and whether it is the page shown is said here, not asked of
    Unfold, which does so with a lazy object for each entry."""
    return [
        {
            "title": title or None,
            "separator": bool(title),
            "items": [_item(request, *entry) for entry in entries if _may_see(request, entry[2])],
        }
        for title, entries in _GROUPS.items()
    ]


def _may_see(request: HttpRequest, name: str) -> bool:
    """`name` is a model's table, shown to who may view it, or the name of a page for all."""
    application, _, model = name.partition("_")
    return ":" in name or request.user.has_perm(f"{application}.view_{model}")


def _item(request: HttpRequest, title: str, icon: str, name: str) -> dict[str, Any]:
    link = reverse(name if ":" in name else f"admin:{name}_changelist")
    is_active = request.path == link if name == "admin:index" else request.path.startswith(link)
    return {"title": title, "icon": icon, "link": link, "active": is_active}
