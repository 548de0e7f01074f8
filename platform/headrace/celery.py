"""The Celery application: `celery -A headrace worker -B`."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "headrace.settings")

app = Celery("headrace", task_cls="headrace.settlement.signs:SignedTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
