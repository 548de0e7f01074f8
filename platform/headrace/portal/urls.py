"""The portal's addresses, each of a tenant's pages with what it asks for (access.py)."""

from django.urls import path

from headrace.portal.access import May
from headrace.portal.request import page
from headrace.portal.views import (
    audit,
    budgets,
    home,
    joining,
    keys,
    members,
    models,
    overview,
    playground,
    projects,
    requests,
    settings,
    usage,
)

app_name = "portal"
urlpatterns = [
    path("", home.home, name="home"),
    path("join/<str:token>/", joining.join, name="join"),
    page("", overview.overview, "overview", May.SEE_USE),
    page("keys/", keys.listing, "keys", May.SEE_KEYS, May.SEE_KEYS),
    page("keys/new/", keys.create, "keys-new", May.CHANGE_KEYS, May.CHANGE_KEYS),
    page("keys/<str:key>/", keys.one, "keys-one", May.SEE_KEYS, May.CHANGE_KEYS),
    page("keys/<str:key>/rotate/", keys.rotate, "keys-rotate", May.CHANGE_KEYS, May.CHANGE_KEYS),
    page("keys/<str:key>/revoke/", keys.revoke, "keys-revoke", May.CHANGE_KEYS, May.CHANGE_KEYS),
    page("usage/", usage.usage, "usage", May.SEE_USE),
    page("usage/export.csv", usage.export, "usage-export", May.SEE_USE),
    page("requests/", requests.listing, "requests", May.SEE_USE),
    page("requests/live/", requests.follow, "requests-live", May.SEE_USE),
    page("requests/<uuid:request_id>/", requests.one, "requests-one", May.SEE_USE),
    page("playground/", playground.playground, "playground", May.PLAY),
    page("playground/key/", playground.key, "playground-key", None, May.PLAY),
    page("budgets/", budgets.budgets, "budgets", May.SEE_BUDGETS),
    page("models/", models.models, "models", May.SEE_USE),
    page("projects/", projects.listing, "projects", May.SEE_SETTINGS),
    page("projects/new/", projects.create, "projects-new", May.CHANGE_PROJECTS, May.CHANGE_PROJECTS),
    page("projects/<str:slug>/", projects.one, "projects-one", May.CHANGE_PROJECTS, May.CHANGE_PROJECTS),
    page("members/", members.listing, "members", May.SEE_PEOPLE),
    page("members/invite/", members.invite, "members-invite", None, May.CHANGE_PEOPLE),
    page("members/<int:member>/role/", members.change, "members-role", None, May.CHANGE_PEOPLE),
    page("members/<int:member>/remove/", members.remove, "members-remove", None, May.CHANGE_PEOPLE),
    page(
        "members/invitations/<int:invitation>/withdraw/", members.withdraw, "members-withdraw", None, May.CHANGE_PEOPLE
    ),
    page("audit/", audit.log, "audit", May.SEE_AUDIT),
    page("audit/export.csv", audit.export, "audit-export", May.SEE_AUDIT),
    page("settings/", settings.settings, "settings", May.SEE_SETTINGS, May.CHANGE_SETTINGS),
]
