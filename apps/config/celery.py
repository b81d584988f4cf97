"""The Celery application: queues by kind of work, late acknowledgement, bounded prefetch."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings.dev")

from celery import Celery

app = Celery("parley")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
