"""The console's page of API keys."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import action, display
from unfold.forms import BaseDialogForm
from unfold.widgets import UnfoldAdminSelect2MultipleWidget, UnfoldAdminTextInputWidget

from headrace.console.cells import refreshed
from headrace.console.confirmation import dialog, question
from headrace.console.moment_filter import moment_filter
from headrace.console.tenants.tenants import LIMITS
from routing.models import Model
from tenants.api_keys import change_key, find_key, issue_key, revoke_key
from tenants.models import ApiKey

REVOKING = (
    "New requests with it, and with any secret it had before, are refused within a second. Streams already running "
    "finish. It cannot be undone; what it used stays in the records."
)


class FindKeyForm(BaseDialogForm):
    text = forms.CharField(
        label="The key, whole",
        max_length=300,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


class KeyForm(forms.ModelForm):  # type: ignore[type-arg]
    models = forms.MultipleChoiceField(
        required=False,
        widget=UnfoldAdminSelect2MultipleWidget,
        help_text="The models it may call. None selected: all, also those to come.",
    )

    class Meta:
        model = ApiKey
        fields = ("project", "name", "models", "priority", "expires_at")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "models" in self.fields:
            names = {*Model.objects.values_list("name", flat=True), *(self.instance.models or [])}
            self.fields["models"].choices = [(name, name) for name in sorted(names)]  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.instance._state.adding and (project := cleaned.get("project")):
            self.instance.tenant_id = project.tenant_id
        return cleaned


@admin.register(ApiKey)
class ApiKeyAdmin(ModelAdmin):
    form = KeyForm
    list_display = ("name", "project", "state", "identity", "priority", "allowed", "expires", "used", "created")
    list_filter = (
        "priority",
        ("revoked_at", moment_filter("revoked", "No", "Yes")),
        ("tenant", AutocompleteSelectFilter),
    )
    list_filter_submit = True
    search_fields = ("public_id__exact", "name", "project__slug", "tenant__slug")
    search_help_text = "A name, project, tenant or public id"
    autocomplete_fields = ("project",)
    readonly_fields = ("public_id", "hint", "created_at", "last_used_at", "revoked_at")
    actions = ("revoke",)
    actions_detail = ("revoke_this",)
    actions_list = ("find",)
    list_select_related = ("project",)
    list_fullwidth = True
    list_per_page = 25
    add_fieldsets = (
        (None, {"fields": [("project", "name"), "models", "priority", "expires_at"]}),
        LIMITS,
    )
    fieldsets = (
        (None, {"fields": [("project", "name"), "models", "priority", "expires_at"]}),
        LIMITS,
        ("About", {"fields": [("public_id", "hint"), ("created_at", "last_used_at", "revoked_at")]}),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> tuple[str, ...]:
        return (*self.readonly_fields, "project") if obj else self.readonly_fields

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        buttons = {"show_save_and_add_another": False, "show_save_and_continue": False}  # the new key is shown next
        response: HttpResponse = super().add_view(request, form_url, (extra_context or {}) | buttons)
        return response

    def has_delete_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        return False  # records refer to it for ever; it is revoked instead

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        if change:
            change_key(key=obj, **{name: form.cleaned_data[name] for name in form.changed_data})
            return
        issued = issue_key(**form.cleaned_data)
        obj.pk, obj.hint = issued.key.pk, issued.key.hint
        obj.issued_text = issued.text  # type: ignore[attr-defined]  # for response_add; never stored

    def response_add(self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None) -> HttpResponse:
        """The one page that shows the key: the answer to the form itself, so that nothing keeps it."""
        context = self.admin_site.each_context(request) | {
            "title": f"Key {obj}",
            "key": obj,
            "text": obj.issued_text,  # type: ignore[attr-defined]
            "opts": self.opts,
        }
        response = TemplateResponse(request, "admin/minted_key.html", context)
        response["Cache-Control"] = "no-store"
        return response

    @display(description="State", label={"live": "success", "expired": "warning", "revoked": "danger"})
    def state(self, key: ApiKey) -> str:
        if key.is_revoked:
            return "revoked"
        return "live" if key.is_live(timezone.now()) else "expired"

    @display(description="Public id and ending", ordering="public_id")
    def identity(self, key: ApiKey) -> str:
        return f"{key.public_id} \u2026{key.hint}"

    @display(description="May call")
    def allowed(self, key: ApiKey) -> str:
        return ", ".join(key.models[:3]) + (f" and {len(key.models) - 3} more" if len(key.models) > 3 else "") or "all"

    @display(description="Expires", ordering="expires_at")
    def expires(self, key: ApiKey) -> str:
        return f"{key.expires_at:%Y-%m-%d}" if key.expires_at else "never"

    @display(description="Last used (UTC)", ordering="last_used_at")
    def used(self, key: ApiKey) -> str:
        return f"{key.last_used_at:%Y-%m-%d %H:%M}" if key.last_used_at else "never"

    @display(description="Created", ordering="created_at")
    def created(self, key: ApiKey) -> str:
        return f"{key.created_at:%Y-%m-%d}"

    @action(description="Revoke the selected keys for good", permissions=["change"])
    def revoke(self, request: HttpRequest, keys: QuerySet[ApiKey]) -> HttpResponse | None:
        if asking := question(
            self, request, keys, action="revoke", title="Revoke these keys for good?", effect=REVOKING, button="Revoke"
        ):
            return asking
        done = sum(revoke_key(key=key) for key in keys)
        self.message_user(request, f"{done} revoked. Streams already running finish.", messages.SUCCESS)
        return None

    @action(
        description="Revoke",
        permissions=["change"],
        icon="block",
        url_path="revoke",
        dialog=dialog("Revoke this key for good?", REVOKING, "Revoke"),
    )
    def revoke_this(self, request: HttpRequest, form: Any, object_id: str) -> HttpResponse:
        key = self.get_object(request, object_id)
        if key is not None and revoke_key(key=key):
            self.message_user(request, f"{key} is revoked.", messages.SUCCESS)
        return refreshed()

    @action(
        description="Find a leaked key",
        permissions=["view"],
        icon="search",
        url_path="find",
        dialog=dialog(
            "Whose key is this?",
            "It is looked up by its digest, among the secrets of today and those that were rotated away."
            " The text is in no address, log or record.",
            "Find",
            FindKeyForm,
        ),
    )
    def find(self, request: HttpRequest, form: Any) -> HttpResponse:
        key = find_key(form.cleaned_data["text"])
        if key is None:
            self.message_user(request, "No key of any tenant has this text.", messages.INFO)
            return refreshed()
        self.message_user(request, f"This is {key} of {key.tenant}. If it has leaked, revoke it.", messages.WARNING)
        response = HttpResponse(status=200)
        response["HX-Redirect"] = reverse("admin:tenants_apikey_change", args=[key.pk])
        return response
