"""Admin lists of tables that grow without end and that nobody changes: no COUNT(*), no deep OFFSET, nothing to edit."""

from typing import Any

from django.core.paginator import EmptyPage, Page, Paginator
from django.db.models import Model
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.views import ChangeList

DEEPEST = 5_000  # rows; whoever looks for older ones filters


class CappedPaginator(Paginator):  # type: ignore[type-arg]
    """Pages of the first DEEPEST rows. Their number is not asked: one row more than a page is read instead."""

    template_name = "admin/capped_pages.html"
    has_more = False

    @property
    def count(self) -> int:
        return DEEPEST

    def page(self, number: int | str) -> "Page[Any]":
        number = int(number)
        if not 1 <= number <= self.num_pages:
            raise EmptyPage
        first = (number - 1) * self.per_page
        rows = list(self.object_list[first : first + self.per_page + 1])
        self.has_more = len(rows) > self.per_page and number < self.num_pages
        return Page(rows[: self.per_page], number, self)


class CappedChangeList(ChangeList):
    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.full_result_count = self.result_count  # equal: the page then states neither


class GrowingList(ModelAdmin):
    paginator = CappedPaginator
    show_full_result_count = False
    list_disable_select_all = True
    list_fullwidth = True
    list_filter_submit = True
    list_per_page = 25

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[CappedChangeList]:
        return CappedChangeList

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
