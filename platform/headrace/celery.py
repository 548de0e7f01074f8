"""The Celery application: `celery -A headrace worker -B`."""

import os
import sys
from pathlib import Path

from celery import Celery

from headrace_core import log_writer

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "headrace.settings")

if "celery" in Path(sys.argv[0]).parts[-2:]:  # `celery`, or `python -m celery`: the process is its own
    log_writer.divert_descriptors()

app = Celery("headrace", task_cls="headrace.worker.signs_of_life:SignedTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
