"""The admin's pages that ask before they save what acts on live traffic or on money."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from unfold.admin import ModelAdmin

from headrace.console.confirmation import Change, asking, is_sure, is_sure_of
from headrace_core.config_lock import lock_configuration

State = dict[str, str]
NOTHING = "\u2013"
MEANWHILE = "It was changed by somebody else while you were asked: this is what your change comes to now."


@dataclass(frozen=True, slots=True)
class Asked:
    """What saving would come to. Without changes nobody is asked."""

    title: str
    effects: Sequence[str]
    changes: Sequence[Change]
    button: str


class _Unsure(Exception):
    """Takes back what was saved only to see what would come of it."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked.title)
        self.asked = asked


class AskingAdmin(ModelAdmin):
    """Saves within a transaction, looks at what that changed, and takes it back unless somebody said yes to it."""

    def state_of(self, row: Any) -> State:
        """What `row` says now, with the rows that belong to it, in people's words."""
        raise NotImplementedError

    def asks(self, row: Any, before: State | None) -> Asked:
        """row: as it would be saved. before: its `state_of` until now, None for a new one."""
        raise NotImplementedError

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> Any:
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except _Unsure as unsure:
            return self._question(request, unsure.asked)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        lock_configuration()
        now = self.get_object(request, obj.pk) if change else None
        if change and now is None:
            raise Http404  # deleted since the form was read: saving would make it anew
        form.before = None if now is None else self.state_of(now)
        self.write(request, obj, form, change)

    def write(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Write the row; on `obj` is then what was written."""
        super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        asked = self.asks(form.instance, form.before)
        if asked.changes and not is_sure_of(request, asked.changes):
            raise _Unsure(asked)

    def _question(self, request: HttpRequest, asked: Asked) -> HttpResponse:
        said = [
            (name, text)
            for name, texts in request.POST.lists()
            if name not in ("csrfmiddlewaretoken", "sure", "seen")
            for text in texts
        ]
        effects = [*([MEANWHILE] if is_sure(request) else []), *asked.effects]
        return asking(self, request, asked.title, effects, asked.button, said, changes=asked.changes)


def differences(before: State, after: State) -> list[Change]:
    """In the order of `after`, what is gone last."""
    names = [*after, *(name for name in before if name not in after)]
    changes = [Change(name, before.get(name, NOTHING), after.get(name, NOTHING)) for name in names]
    return [change for change in changes if change.before != change.after]
