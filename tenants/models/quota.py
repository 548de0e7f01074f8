"""How many rows of a kind one tenant may have: the installation's own figures, and operators' exceptions."""

import json
from collections.abc import Collection

from django.core.exceptions import ValidationError
from django.db import connections, models, router
from django.db.models import Q


class Quota(models.Model):
    """At most `most` rows of what `name` says (tenants.quotas.DEFAULTS). An empty tenant is every one without its own.

    The database's triggers hold it (headrace_quota): what runs in parallel, or past the screens, cannot pass it.
    """

    tenant = models.CharField(max_length=63, blank=True)
    name = models.CharField(max_length=32)
    most = models.BigIntegerField()

    class Meta:
        ordering = ("tenant", "name")
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="tenants_quota_tenant_name"),
            models.CheckConstraint(condition=Q(most__gte=0), name="tenants_quota_most"),
        ]

    def __str__(self) -> str:
        return f"{self.tenant or 'every tenant'}: {self.most} {self.name}"


class Limited(models.Model):
    """Rows of a tenant that a quota counts. Forms that make one say what the database would refuse.

    Of two at once that both fit the database may still refuse one (tenants.quotas.refusal).
    """

    class Meta:
        abstract = True

    def validate_constraints(self, exclude: Collection[str] | None = None) -> None:
        super().validate_constraints(exclude)
        if self._state.adding and (said := self._quotas_against()):
            raise ValidationError(said)

    def _quotas_against(self) -> list[str]:
        """In words, what stands against this row."""
        columns = {field.attname: getattr(self, field.attname) for field in self._meta.concrete_fields}
        if columns["tenant_id"] is None:
            return []
        row = json.dumps({name: value for name, value in columns.items() if isinstance(value, str)})
        with connections[router.db_for_write(type(self), instance=self)].cursor() as cursor:
            cursor.execute("SELECT headrace_quota_refusals(%s::regclass, %s)", [self._meta.db_table, row])
            return [said for (said,) in cursor.fetchall()]
