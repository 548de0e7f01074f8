"""The operators' pages on tenants, projects, keys, members and the audit trail."""

import re
from functools import cache
from typing import Any

from django.apps import apps
from django.contrib import admin, messages
from django.db.models import Count, Model, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import action, display

from headrace.console.cells import number, refreshed
from headrace.console.confirmation import dialog, question
from headrace.console.growing_lists import GrowingList
from headrace.console.moment_filter import moment_filter
from tenants.limits import add_model_limits, remove_model_limits, set_limits
from tenants.members import add_member, change_member, remove_member
from tenants.models import LIMIT_FIELDS, ApiKey, AuditEntry, Member, ModelLimits, Project, Tenant
from tenants.projects import add_project, change_project, remove_project
from tenants.tenants import add_tenant, change_tenant, resume_tenant, suspend_tenant

LIMITS = (
    "Limits",
    {"fields": [LIMIT_FIELDS[:2], LIMIT_FIELDS[2:4], LIMIT_FIELDS[4:]], "description": "Empty: no limit."},
)

SUSPENDING = (
    "All its keys are refused within a second, and its members see that it is suspended. Streams already running "
    "finish. Nothing is deleted; it can be resumed."
)
RESUMING = "All its keys that are not revoked open the door within a second, and its members see their portal again."


def _count(rows: type[Model], belonging_to: str) -> Coalesce:
    """Of each row shown, not by a join: that would count all, and anew for the number of pages and for each filter."""
    mine = rows._default_manager.filter(**{belonging_to: OuterRef("pk")}).order_by().values(belonging_to)
    return Coalesce(Subquery(mine.annotate(count=Count("pk")).values("count")), 0)


@admin.register(Tenant)
class TenantAdmin(ModelAdmin):
    list_display: tuple[str, ...] = (
        "slug",
        "name",
        "state",
        "currency",
        "time_zone",
        "projects_count",
        "keys_count",
        "created_at",
    )
    list_filter = ("currency", ("suspended_at", moment_filter("state", "Active", "Suspended")))
    search_fields = ("slug", "name")
    ordering = ("slug",)
    actions = ("suspend", "resume")
    actions_detail = ("suspend_this", "resume_this")
    readonly_fields = ("suspended_at", "created_at")
    fieldsets = (
        (None, {"fields": [("slug", "name"), ("currency", "time_zone"), "weight", ("suspended_at", "created_at")]}),
        LIMITS,
        ("Cached input", {"fields": ["cached_input_weight"]}),
    )
    list_fullwidth = True
    list_per_page = 25

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tenant]:
        rows: QuerySet[Tenant] = super().get_queryset(request)
        return rows.annotate(n_projects=_count(Project, "tenant"), n_keys=_count(ApiKey, "tenant"))

    def get_readonly_fields(self, request: HttpRequest, obj: Tenant | None = None) -> tuple[str, ...]:
        if obj is None:
            return self.readonly_fields
        is_used = obj.keys.exclude(last_used_at=None).exists()  # what was used is in its currency for ever
        return (*self.readonly_fields, "slug", *(["currency"] if is_used else []))

    def has_delete_permission(self, request: HttpRequest, obj: Tenant | None = None) -> bool:
        return False  # records refer to it for ever; it is suspended instead

    def save_model(self, request: HttpRequest, obj: Tenant, form: Any, change: bool) -> None:
        if change:
            change_tenant(tenant=obj, **{name: form.cleaned_data[name] for name in form.changed_data})
        else:
            add_tenant(**form.cleaned_data)

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Of the two the one that would change anything."""
        is_suspended = Tenant.objects.filter(pk=object_id).exclude(suspended_at=None).exists()
        idle = "suspend_this" if is_suspended else "resume_this"
        actions = super().get_actions_detail(request, object_id)
        return [each for each in actions if not each.action_name.endswith(idle)]

    @display(description="State", label={"active": "success", "suspended": "danger"})
    def state(self, tenant: Tenant) -> str:
        return "suspended" if tenant.is_suspended else "active"

    @display(description="Projects", ordering="n_projects")
    def projects_count(self, tenant: Any) -> SafeString:
        return number(tenant.n_projects)

    @display(description="Keys", ordering="n_keys")
    def keys_count(self, tenant: Any) -> SafeString:
        return number(tenant.n_keys)

    @action(description="Suspend: refuse all keys of the selected tenants", permissions=["change"])
    def suspend(self, request: HttpRequest, tenants: QuerySet[Tenant]) -> HttpResponse | None:
        if asking := question(
            self,
            request,
            tenants,
            action="suspend",
            title="Suspend these tenants?",
            effect=SUSPENDING,
            button="Suspend",
        ):
            return asking
        done = sum(suspend_tenant(tenant=tenant) for tenant in tenants)
        self.message_user(request, f"{done} suspended. Streams already running finish.", messages.SUCCESS)
        return None

    @action(description="Resume: let the keys of the selected tenants in again", permissions=["change"])
    def resume(self, request: HttpRequest, tenants: QuerySet[Tenant]) -> HttpResponse | None:
        if asking := question(
            self, request, tenants, action="resume", title="Let these tenants in again?", effect=RESUMING,
            button="Resume",
        ):  # fmt: skip
            return asking
        done = sum(resume_tenant(tenant=tenant) for tenant in tenants)
        self.message_user(request, f"{done} resumed.", messages.SUCCESS)
        return None

    @action(
        description="Suspend",
        permissions=["change"],
        icon="block",
        url_path="suspend",
        dialog=dialog("Suspend this tenant?", SUSPENDING, "Suspend"),
    )
    def suspend_this(self, request: HttpRequest, form: Any, object_id: str) -> HttpResponse:
        tenant = self.get_object(request, object_id)
        if tenant is not None and suspend_tenant(tenant=tenant):
            self.message_user(request, f"{tenant} is suspended. Streams already running finish.", messages.SUCCESS)
        return refreshed()

    @action(
        description="Resume",
        permissions=["change"],
        icon="play_arrow",
        url_path="resume",
        dialog=dialog(
            "Let this tenant in again?",
            RESUMING,
            "Resume",
        ),
    )
    def resume_this(self, request: HttpRequest, form: Any, object_id: str) -> HttpResponse:
        tenant = self.get_object(request, object_id)
        if tenant is not None and resume_tenant(tenant=tenant):
            self.message_user(request, f"{tenant} is let in again.", messages.SUCCESS)
        return refreshed()


@admin.register(Project)
class ProjectAdmin(ModelAdmin):
    list_display = ("slug", "tenant", "name", "keys_count", "created_at")
    list_filter = (("tenant", AutocompleteSelectFilter),)
    list_filter_submit = True
    list_per_page = 25
    search_fields = ("slug", "name", "tenant__slug")
    autocomplete_fields = ("tenant",)
    readonly_fields = ("created_at",)
    fieldsets = ((None, {"fields": [("tenant", "slug"), ("name", "weight"), ("created_at",)]}), LIMITS)
    list_select_related = ("tenant",)
    list_fullwidth = True

    def get_queryset(self, request: HttpRequest) -> QuerySet[Project]:
        rows: QuerySet[Project] = super().get_queryset(request)
        return rows.annotate(n_keys=_count(ApiKey, "project"))

    def get_readonly_fields(self, request: HttpRequest, obj: Project | None = None) -> tuple[str, ...]:
        return (*self.readonly_fields, "tenant", "slug") if obj else self.readonly_fields

    def save_model(self, request: HttpRequest, obj: Project, form: Any, change: bool) -> None:
        if change:
            change_project(project=obj, **{name: form.cleaned_data[name] for name in form.changed_data})
        else:
            obj.pk = add_project(**form.cleaned_data).pk

    def delete_model(self, request: HttpRequest, obj: Project) -> None:
        remove_project(project=obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Project]) -> None:
        for project in queryset:
            remove_project(project=project)

    @display(description="Keys", ordering="n_keys")
    def keys_count(self, project: Any) -> SafeString:
        return number(project.n_keys)


def _limit(name: str) -> Any:
    @display(description=str(ModelLimits._meta.get_field(name).verbose_name).capitalize(), ordering=name)  # type: ignore[union-attr]
    def shown(limits: ModelLimits) -> SafeString:
        return number(getattr(limits, name))

    shown.__name__ = name  # the column's class in the page
    return shown


@admin.register(ModelLimits)
class ModelLimitsAdmin(ModelAdmin):
    list_display = ("model", "tenant", "project", "key", *map(_limit, LIMIT_FIELDS[:4]))
    list_filter = (("tenant", AutocompleteSelectFilter),)
    list_filter_submit = True
    list_per_page = 25
    search_fields = ("model", "tenant__slug", "project", "key")
    list_select_related = ("tenant",)
    autocomplete_fields = ("tenant",)
    fieldsets = ((None, {"fields": [("tenant", "model"), ("project", "key")]}), LIMITS)
    list_fullwidth = True

    def get_readonly_fields(self, request: HttpRequest, obj: ModelLimits | None = None) -> tuple[str, ...]:
        return ("tenant", "model", "project", "key") if obj else ()

    def save_model(self, request: HttpRequest, obj: ModelLimits, form: Any, change: bool) -> None:
        if change:
            set_limits(holder=obj, **{name: form.cleaned_data[name] for name in form.changed_data})
            return
        limits = {name: form.cleaned_data[name] for name in LIMIT_FIELDS}
        obj.pk = add_model_limits(tenant=obj.tenant_id, model=obj.model, project=obj.project, key=obj.key, **limits).pk

    def delete_model(self, request: HttpRequest, obj: ModelLimits) -> None:
        remove_model_limits(row=obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[ModelLimits]) -> None:
        for row in queryset:
            remove_model_limits(row=row)


@admin.register(Member)
class MemberAdmin(ModelAdmin):
    list_display = ("user", "email", "tenant", "role_label")
    list_filter = ("role", ("tenant", AutocompleteSelectFilter))
    list_filter_submit = True
    list_per_page = 25
    search_fields = ("user__username", "user__email", "tenant__slug")
    autocomplete_fields = ("tenant", "user")
    list_select_related = ("user", "tenant")

    def save_model(self, request: HttpRequest, obj: Member, form: Any, change: bool) -> None:
        if change:
            change_member(member=obj, **{name: form.cleaned_data[name] for name in form.changed_data})
        else:
            obj.pk = add_member(tenant=obj.tenant, user=obj.user, role=obj.role).pk

    def delete_model(self, request: HttpRequest, obj: Member) -> None:
        remove_member(member=obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Member]) -> None:
        for member in queryset:
            remove_member(member=member)

    @display(description="E-mail", ordering="user__email")
    def email(self, member: Member) -> str:
        return member.user.email

    @display(description="Role", ordering="role", label=True)
    def role_label(self, member: Member) -> str:
        return member.role


@admin.register(AuditEntry)
class AuditEntryAdmin(GrowingList):
    list_display = ("time", "who", "origin", "tenant", "action_label", "row", "changes")
    list_display_links = ("time",)
    list_filter = ("action",)
    search_fields = ("who__exact", "tenant__exact", "subject__endswith")
    search_help_text = "A name, a tenant, or the key of a row"
    fields = (("time", "row"), ("who", "origin"), ("tenant", "action"), "values")
    readonly_fields = ("time", "row", "values")

    @display(description="Time (UTC)")
    def time(self, entry: AuditEntry) -> str:
        return f"{entry.at:%Y-%m-%d %H:%M:%S}"

    @display(description="Action", label={"created": "success", "changed": "info", "deleted": "danger"})
    def action_label(self, entry: AuditEntry) -> str:
        return entry.action

    @display(description="What")
    def row(self, entry: AuditEntry) -> str:
        table, _, key = entry.subject.partition(" ")
        return f"{_names().get(table, table)} {key}"

    @display(description="Change")
    def changes(self, entry: AuditEntry) -> SafeString:
        """Of a changed row what changed; of a made or deleted one nothing: its page has it all."""
        return _lines(entry) if entry.action == "changed" else format_html("{}", "\u2013")

    @display(description="Values")
    def values(self, entry: AuditEntry) -> SafeString:
        return _lines(entry)


_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


@cache
def _names() -> dict[str, str]:
    """What the models call themselves, by their tables."""
    return {model._meta.db_table: str(model._meta.verbose_name) for model in apps.get_models()}


def _lines(entry: AuditEntry) -> SafeString:
    before, after = entry.before or {}, entry.after or {}
    names = sorted(name for name in {**before, **after} if before.get(name) != after.get(name))
    if entry.action == "changed":
        values = [f"{_shown(before[name])} \u2192 {_shown(after[name])}" for name in names]
    else:
        values = [_shown((before | after)[name]) for name in names]
    lines = format_html_join("", "<div><b>{}</b> {}</div>", zip(names, values, strict=True))
    return format_html('<div class="hr-changes">{}</div>', lines)


def _shown(value: Any) -> str:
    if value is None or value == "":
        return "none"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return f"{text[:10]} {text[11:19]}" if _MOMENT.match(text) else text
