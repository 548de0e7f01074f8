"""The operator who is signed in to the admin."""

import pytest
from django.contrib.auth.models import User
from django.test import Client


@pytest.fixture
def alice(db: None) -> Client:
    client = Client(REMOTE_ADDR="192.0.2.7")
    client.force_login(User.objects.create_superuser("alice-the-operator"))
    return client
