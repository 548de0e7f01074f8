"""The operators' pages on pools and providers: asked before saving, as requests go to them within a second."""

import hashlib
from typing import Any

from django.contrib import admin

from billing import amounts
from engines.models import Pool, Provider, Replica
from headrace.console.engines.pools import PoolAdmin, ProviderAdmin
from headrace.console.saving import Asked, AskingAdmin, State, differences
from routing.models import Route

COSTS = ("Cost of a GPU hour", "GPUs per replica")


class AskingPoolAdmin(AskingAdmin, PoolAdmin):
    def state_of(self, row: Pool) -> State:
        replicas = Replica.objects.filter(pool=row).order_by("name")
        return {f"Replica {each.name}": f"{each.url}{'' if each.enabled else ', off'}" for each in replicas} | {
            "Engine": row.get_engine_display(),
            "Model": row.model,
            "Modalities": ", ".join(row.modalities) or "as its engines say",
            COSTS[0]: amounts.priced(row.gpu_hour_cost, row.cost_currency),
            COSTS[1]: amounts.plain(row.gpus_per_replica),
            "Takes a priority with each request": "yes" if row.orders_by_priority else "no",
            "API key of the engines": _secret(row.api_key),
            "Admin key of the engines": _secret(row.admin_key),
        }

    def asks(self, row: Pool, before: State | None) -> Asked:
        """No route leads to a new one yet."""
        changes = differences(before, self.state_of(row)) if before else ()
        if not Replica.objects.filter(pool=row, enabled=True).exists():
            effect = "It leaves no replica that is on: within a second the pool takes no new request."
        else:
            effect = "New requests are sent by this within a second."
        return Asked(
            title=f"Change the pool {row}?",
            effects=[effect, "Those that run finish where they are.", _meant(pool=row)]
            + ["What its replicas cost is counted by this from now on; what is counted stays."]
            * any(change.what in COSTS for change in changes),
            changes=changes,
            button="Change the pool",
        )


class AskingProviderAdmin(AskingAdmin, ProviderAdmin):
    def state_of(self, row: Provider) -> State:
        return {
            "Protocol": row.get_protocol_display(),
            "Base URL": row.base_url,
            "API key": _secret(row.api_key),
        }

    def asks(self, row: Provider, before: State | None) -> Asked:
        return Asked(
            title=f"Change the provider {row}?",
            effects=[
                "New requests, and the API key with them, are sent to this address within a second. Those that run "
                "finish where they are.",
                _meant(provider=row),
            ],
            changes=differences(before, self.state_of(row)) if before else (),
            button="Change the provider",
        )


def _secret(sealed: Any) -> str:
    """Tells one stored secret from another, and nothing of it: what is hashed is sealed."""
    return f"stored ({hashlib.sha256(bytes(sealed)).hexdigest()[:6]})" if sealed else "none"


def _meant(**target: Pool | Provider) -> str:
    names = Route.objects.filter(**{f"targets__{kind}": row for kind, row in target.items()}).distinct()
    models = ", ".join(names.order_by("model").values_list("model", flat=True))
    return f"It is a target of {models}." if models else "It is a target of no model."


for model, page in ((Pool, AskingPoolAdmin), (Provider, AskingProviderAdmin)):
    admin.site.unregister(model)
    admin.site.register(model, page)
