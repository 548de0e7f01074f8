"""Who uses the platform, and how much each may use."""

from tenants.models.api_key import ApiKey, Priority
from tenants.models.audit_entry import AuditEntry
from tenants.models.invitation import Invitation
from tenants.models.limits import LIMIT_CEILING, LIMIT_FIELDS, CeiledLimits, Limits
from tenants.models.member import Member, Role
from tenants.models.model_limits import ModelLimits
from tenants.models.operator_visit import OperatorVisit
from tenants.models.project import Project
from tenants.models.quota import Quota
from tenants.models.retired_secret import RetiredSecret
from tenants.models.tenant import Tenant

__all__ = [
    "LIMIT_CEILING",
    "LIMIT_FIELDS",
    "ApiKey",
    "AuditEntry",
    "CeiledLimits",
    "Invitation",
    "Limits",
    "Member",
    "ModelLimits",
    "OperatorVisit",
    "Priority",
    "Project",
    "Quota",
    "RetiredSecret",
    "Role",
    "Tenant",
]
