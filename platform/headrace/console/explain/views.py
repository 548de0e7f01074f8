"""The form that explains a route: the same answer as `manage.py routes explain`. Staff only (see urls.py); reads."""

import asyncio
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from headrace.console.explain.answers import Explanation
from headrace.console.explain.explaining import Question, Unexplained, explain
from headrace.gateway.errors import ApiError
from routing.models import Model
from tenants.models import Tenant

LONGEST = 200_000


class QuestionForm(forms.Form):
    """A request as far as it matters for where it goes."""

    model = forms.ChoiceField(choices=())
    tenant = forms.CharField(
        required=False,
        max_length=63,
        help_text="Its short name.",
        widget=forms.TextInput(attrs={"list": "tenants", "autocomplete": "off"}),
    )
    project = forms.CharField(required=False, max_length=63, help_text="Its short name.")
    key = forms.CharField(required=False, max_length=12, help_text="Its public id.")
    tier = forms.CharField(required=False, max_length=100, help_text="What x-headrace-tier would say.")
    prompt_tokens = forms.IntegerField(required=False, min_value=0, help_text="Else of the messages below.")
    max_tokens = forms.IntegerField(required=False, min_value=1, help_text="Else the model's default.")
    messages = forms.CharField(
        required=False,
        max_length=LONGEST,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        help_text="A chat's JSON, whole or its messages alone: for its prompt, tools and media. It is stored nowhere.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = Model.objects.filter(enabled=True).order_by("name").values_list("name", flat=True)
        self.fields["model"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]

    def question(self) -> Question:
        said = dict(self.cleaned_data)
        return Question(body=said.pop("messages").strip().encode(), **said)


@require_http_methods(["GET", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """A question is posted: a prompt belongs in no address. GET takes `model`, to begin with."""
    if not request.user.has_perm("routing.view_route"):
        raise PermissionDenied
    form = QuestionForm(request.POST or None, initial={"model": request.GET.get("model", "")})
    context = admin.site.each_context(request) | {
        "title": "Explain a route",
        "form": form,
        "tenants": Tenant.objects.values_list("pk", flat=True)[:500],
    }
    if request.method == "POST" and form.is_valid():
        try:
            context["found"] = _shown(asyncio.run(explain(form.question())))
        except (Unexplained, ApiError) as error:
            context["refusal"] = str(error).removeprefix("--messages: ")
    return render(request, "admin/routes/explain.html", context)


def _shown(found: Explanation) -> dict[str, Any]:
    """As the template wants it: what was asked as pairs, each target with its number."""
    asked = found.request
    facts = [
        ("Prompt", f"{asked['prompt_tokens']:,} tokens"),
        ("At most to write", f"{asked['max_tokens']:,} tokens"),
        ("Kinds", ", ".join(asked["modalities"]) + (", tools" if asked["tools"] else "")),
        ("Policy", found.policy.replace("_", " ")),
    ]
    targets = [{**target, "takes": not target["verdict"].startswith("no:")} for target in found.targets]
    return {"facts": facts, "targets": targets} | {
        name: getattr(found, name) for name in ("goes_to", "is_waiting", "rejection")
    }
