"""Planning tenants, projects and members. Keys have a module of their own."""

from collections import defaultdict
from collections.abc import Mapping

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db.models.functions import Lower
from django.utils import timezone

from headrace.apply.budgets import Budgets
from headrace.apply.entries import Entry
from headrace.apply.keys import plan_keys
from headrace.apply.model_limits import FIELD, ModelLimitsOf
from headrace.apply.plan import Change, Difference, Plan
from routing.models import Model
from tenants.members import add_member, change_member, draft_member
from tenants.models import Member, Project, Tenant
from tenants.projects import add_project, change_project, draft_project
from tenants.tenants import add_tenant, change_tenant, draft_tenant, resume_tenant, suspend_tenant

_OTHERS = ("suspended", "legal_entity", FIELD)  # said otherwise in the database, or planned elsewhere


def plan_tenants(plan: Plan, entries: list[Entry], models: Mapping[str, Model]) -> None:
    names = [entry.name for entry in entries]
    plan.tenants.update(names)
    tenants = Tenant.objects.in_bulk(names)
    projects: dict[str, dict[str, Project]] = defaultdict(dict)
    for project in Project.objects.filter(tenant__in=names):
        projects[project.tenant_id][project.slug] = project
    people = _People(entries)
    budgets, limits = Budgets(names, models), ModelLimitsOf(names, models)
    for entry in entries:
        tenant = _plan_tenant(plan, entry, tenants.get(entry.name))
        for child in entry.children.get("projects", []):
            projects[entry.name][child.name] = _plan_project(plan, tenant, child, projects[entry.name].get(child.name))
            budgets.plan(plan, entry.name, child, project=child.name)
            limits.plan(plan, entry.name, child, project=child.name)
        for child in entry.children.get("members", []):
            people.plan(plan, tenant, child)
        budgets.plan(plan, entry.name, entry)
        limits.plan(plan, entry.name, entry)
    plan_keys(plan, entries, projects, models, budgets, limits)


def _plan_tenant(plan: Plan, entry: Entry, known: Tenant | None) -> Tenant:
    tenant = known or draft_tenant(slug=entry.name, name=entry.name)
    fields = {field: given.value for field, given in entry.given.items() if field not in _OTHERS}
    wanted = dict(fields)
    if "suspended" in entry.given and entry.get("suspended") != tenant.is_suspended:
        wanted["suspended_at"] = timezone.now() if entry.get("suspended") else None
    change = plan.put(tenant, entry, f"tenant {entry.name}", wanted)
    if change is None:
        return tenant
    if known is None:
        change.add(tenant, add_tenant, slug=entry.name, **{"name": entry.name} | fields)
    elif changes := {name: fields[name] for name in fields if name in change.fields}:
        change.call(change_tenant, tenant=tenant, **changes)
    if "suspended_at" in change.fields:
        change.call(suspend_tenant if tenant.is_suspended else resume_tenant, tenant=tenant)
    return tenant


def _plan_project(plan: Plan, tenant: Tenant, entry: Entry, known: Project | None) -> Project:
    project = known or draft_project(tenant=tenant, slug=entry.name, name=entry.name)
    fields = {field: given.value for field, given in entry.given.items() if field != FIELD}
    change = plan.put(project, entry, f"project {tenant.slug}/{entry.name}", fields)
    if change is not None and known is None:
        change.add(project, add_project, tenant=tenant, slug=entry.name, **{"name": entry.name} | fields)
    elif change is not None:
        change.call(change_project, project=project, **{name: fields[name] for name in change.fields})
    return project


class _People:
    """The users and members that the entries name, by address in lower case. A user not yet known is made, without a
    password: an operator or single sign-on gives the way in."""

    def __init__(self, entries: list[Entry]) -> None:
        addresses = {child.name.lower() for entry in entries for child in entry.children.get("members", [])}
        self._users: dict[str, list[User]] = defaultdict(list)
        for user in User.objects.alias(address=Lower("email")).filter(address__in=addresses):
            self._users[user.email.lower()].append(user)
        members = Member.objects.filter(tenant__in=[entry.name for entry in entries]).select_related("user")
        self._members = {(member.tenant_id, member.user.email.lower()): member for member in members}

    def plan(self, plan: Plan, tenant: Tenant, entry: Entry) -> None:
        address, label = entry.name.lower(), f"member {tenant.slug}/{entry.name}"
        member = known = self._members.get((tenant.slug, address))
        if member is None:
            if "role" not in entry.given:
                plan.problems.add(entry.line, f"{label} wants a role")
                return
            user = self._user(plan, entry, label, address)
            if user is None:
                return
            member = draft_member(tenant=tenant, user=user)
        change = plan.put(member, entry, label, {field: given.value for field, given in entry.given.items()})
        if change is not None and known is None:
            change.call(add_member, tenant=tenant, user=member.user, role=member.role)
        elif change is not None:
            change.call(change_member, member=member, role=member.role)

    def _user(self, plan: Plan, entry: Entry, label: str, address: str) -> User | None:
        users = self._users[address]
        if len(users) > 1:
            plan.problems.add(entry.line, f"{label}: {len(users)} users have this address")
            return None
        if users:
            return users[0]
        try:
            validate_email(entry.name)
            User._meta.get_field("email").run_validators(entry.name)
        except ValidationError:
            plan.problems.add(entry.line, f"{label}: not an e-mail address")
            return None
        if User.objects.filter(username=entry.name[:150]).exists():
            plan.problems.add(entry.line, f"{label}: a user of this name exists with another address")
            return None
        user = User(username=entry.name[:150], email=entry.name)
        user.set_unusable_password()
        email = Difference("email", "none", entry.name)
        plan.changes.append(Change(True, f"user {entry.name}", [email], [(user, None)], line=entry.line))
        users.append(user)
        return user
