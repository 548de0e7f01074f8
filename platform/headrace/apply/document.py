"""Configuration as code: bring the database to what a document says, all of it or nothing."""

from dataclasses import dataclass

from django.db import DataError, IntegrityError, connection

from engines.models import Pool, Provider
from headrace.apply import reader
from headrace.apply.engines import plan_pools, plan_providers
from headrace.apply.entries import Entry, read_fields
from headrace.apply.exchange_rates import plan_exchange_rates
from headrace.apply.invoicing import plan_billing, plan_legal_entities
from headrace.apply.plan import Change, Minted, Plan
from headrace.apply.prices import plan_prices, read_csv, tell_starts
from headrace.apply.problems import ApplyError, Problem, near
from headrace.apply.routing import plan_models
from headrace.apply.sections import DOCUMENT
from headrace.apply.tenants import plan_tenants
from headrace_core import audit
from headrace_core.config_lock import lock_configuration
from headrace_core.writes import WriteError
from routing.models import Model
from tenants import quotas


@dataclass(frozen=True)
class Result:
    """What changed (printed, each is one line) and the keys made, whose texts are to be had only here."""

    changes: list[Change]
    minted: list[Minted]


def apply_document(text: str, *, source: str, actor: str, dry_run: bool = False) -> Result:
    """Make the database say what `text` (YAML) says, in one transaction; a second time changes nothing.

    What the document does not name stays as it is; a list of targets or of a key's models replaces the former one.
    `source` names the document in errors, `actor` who applies it in the audit trail. With `dry_run` nothing is written
    and no key is minted. Raises ApplyError with every problem found; the database is then as before.
    """
    plan = Plan()
    entry = Entry(DOCUMENT, "", 1, 0)
    node = reader.parse(text, plan.problems)
    if node is not None:
        read_fields(entry, node, plan.problems)
    with audit.acting(who=actor, origin="manage.py apply"):
        lock_configuration()  # two documents at once would each plan against the other's half
        entities = plan_legal_entities(plan, entry.children.get("legal_entities", []))
        pools = plan_pools(plan, entry.children.get("pools", []))
        providers = plan_providers(plan, entry.children.get("providers", []))
        models = plan_models(plan, entry.children.get("models", []), pools, providers)
        plan_exchange_rates(plan, entry.children.get("exchange_rates", []))
        plan_tenants(plan, entry.children.get("tenants", []), models)
        plan_billing(plan, entry.children.get("tenants", []), entities)
        plan_prices(plan, entry.children.get("models", []), {*pools, *providers})
        _carry_out(plan, source, dry_run)
    return Result(plan.changes, [] if dry_run else plan.minted)


def apply_prices(text: str, *, source: str, actor: str, dry_run: bool = False) -> Result:
    """As `apply_document`, of a price list in CSV (prices.read_csv) for models that exist."""
    plan = Plan()
    with audit.acting(who=actor, origin="manage.py prices"):
        lock_configuration()
        entries, known = read_csv(text, plan.problems), set(Model.objects.values_list("name", flat=True))
        for entry in entries:
            if entry.name not in known:
                plan.problems.add(entry.line, f'there is no model "{entry.name}"{near(entry.name, known)}')
        places: list[type[Pool] | type[Provider]] = [Pool, Provider]
        targets = {name for place in places for name in place.objects.values_list("name", flat=True)}
        plan_prices(plan, entries, targets)
        _carry_out(plan, source, dry_run)
    return Result(plan.changes, [])


def _carry_out(plan: Plan, source: str, dry_run: bool) -> None:
    if plan.problems.found:
        raise ApplyError(source, plan.problems.found)
    if not dry_run:
        _write(plan, source)


def _write(plan: Plan, source: str) -> None:
    change: Change | None = None
    try:
        for change in plan.changes:
            change.write()
        change = None
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # here, where it can be told, and not at the commit
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        tell_starts(plan.changes)
    except WriteError as error:
        raise ApplyError(source, [_problem(change, str(error))]) from error
    except (DataError, IntegrityError) as error:
        said = quotas.refusal(error) if isinstance(error, IntegrityError) else None
        said = said or f"the database refuses it: {str(error).splitlines()[0]}"
        raise ApplyError(source, [_problem(change, said)]) from error


def _problem(change: Change | None, said: str) -> Problem:
    return Problem(1, said) if change is None else Problem(change.line, f"{change.label}: {said}")
