"""Projects: the parts of a tenant whose keys and use are counted together."""

from django.contrib import messages
from django.db.models import Count, Q
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render

from headrace.portal.forms.projects import ProjectForm
from headrace.portal.request import PortalRequest
from tenants.models import Project
from tenants.projects import add_project, change_project


def listing(request: PortalRequest) -> HttpResponse:
    live = Count("keys", filter=Q(keys__revoked_at=None))
    projects = Project.objects.of(request.tenant).annotate(n_keys=live).order_by("slug")
    return render(request, "portal/projects.html", {"projects": list(projects)})


def create(request: PortalRequest) -> HttpResponse:
    form = ProjectForm(request.tenant, request.POST or None)
    if request.method == "POST" and form.is_valid():
        project = add_project(tenant=request.tenant, **form.cleaned_data)
        messages.success(request, f"{project.name} is made. Its keys come next.")
        return redirect("portal:projects", request.tenant.slug)
    return render(request, "portal/project.html", {"form": form})


def one(request: PortalRequest, slug: str) -> HttpResponse:
    project = Project.objects.of(request.tenant).filter(slug=slug).first()
    if project is None:
        raise Http404
    form = ProjectForm(request.tenant, request.POST or None, instance=project)
    if request.method == "POST" and form.is_valid():
        change_project(project=project, **form.changes)
        messages.success(request, f"{project.name} is saved. Every process obeys within a second.")
        return redirect("portal:projects", request.tenant.slug)
    return render(request, "portal/project.html", {"form": form, "project": project})
