"""The tenant's own settings: its name and its time zone."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render

from headrace.portal.access import May
from headrace.portal.forms.settings import SettingsForm
from headrace.portal.request import PortalRequest
from tenants.models import Tenant
from tenants.tenants import change_tenant


def settings(request: PortalRequest) -> HttpResponse:
    tenant = request.tenant
    form = SettingsForm(request.POST or None, instance=Tenant.objects.get(pk=tenant.pk))
    if request.method == "POST" and form.is_valid():
        changes = {name: form.cleaned_data[name] for name in form.changed_data}
        change_tenant(tenant=form.instance, **changes)
        messages.success(request, "The settings are saved.")
        return redirect("portal:settings", tenant.slug)
    context = {"form": form, "editable": request.may(May.CHANGE_SETTINGS), "limits": tenant.limits}
    return render(request, "portal/settings.html", context)
