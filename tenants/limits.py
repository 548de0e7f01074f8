"""Set the limits of a tenant, a project or a key, for all models together or for one. Every process obeys within a
second (the configuration feed)."""

from typing import TypedDict, Unpack

from headrace_core.writes import check_names, check_row, transactional
from tenants.models import LIMIT_FIELDS, Limits, ModelLimits


class LimitValues(TypedDict, total=False):
    """The limits that are set, by field; None: no limit. What is left out stays."""

    requests_per_minute: int | None
    input_tokens_per_minute: int | None
    output_tokens_per_minute: int | None
    concurrency: int | None
    max_prompt_tokens: int | None
    max_output_tokens: int | None


@transactional(ModelLimits)
def set_limits(*, holder: Limits, **limits: Unpack[LimitValues]) -> None:
    """Set limits of a tenant, a project, a key, or those for one model. Raises InvalidWrite.

    What an operator sets below a tenant is a ceiling: the database refuses a member's connection more than that.
    """
    check_names(limits, LIMIT_FIELDS)
    for name, value in limits.items():
        setattr(holder, name, value)
    check_row(holder, limits)
    holder.save(update_fields=list(limits))


def draft_model_limits(
    *, tenant: str, model: str, project: str = "", key: str = "", **limits: Unpack[LimitValues]
) -> ModelLimits:
    """Build the row that `add_model_limits` saves, unsaved: for plans."""
    check_names(limits, LIMIT_FIELDS)
    return ModelLimits(tenant_id=tenant, project=project, key=key, model=model, **limits)


@transactional(ModelLimits)
def add_model_limits(
    *, tenant: str, model: str, project: str = "", key: str = "", **limits: Unpack[LimitValues]
) -> ModelLimits:
    """Limit one model for a project (its slug), for a key (its public id), or for all of the tenant.

    Whose limits they are never changes. Raises InvalidWrite. The database refuses a second row for the same, and one
    row too many.
    """
    row = draft_model_limits(tenant=tenant, model=model, project=project, key=key, **limits)
    check_row(row)
    row.save(force_insert=True)
    return row


@transactional(ModelLimits)
def remove_model_limits(*, row: ModelLimits) -> None:
    """Remove the limits for one model; those for all models hold on."""
    row.delete()
