"""The console's pages of the platform's users."""

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

admin.site.unregister([User, Group])
# Of allauth: each person's own business, on the pages of his account.
admin.site.unregister([EmailAddress, Authenticator, UserSession])


@admin.register(User)
class OperatorAdmin(UserAdmin, ModelAdmin):  # type: ignore[type-arg]
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_active", "is_staff", "is_superuser", "last_login")


@admin.register(Group)
class OperatorGroupAdmin(GroupAdmin, ModelAdmin):
    pass
