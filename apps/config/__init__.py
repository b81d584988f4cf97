"""Settings, the URL map and the entry points of each kind of process."""

from apps.config.celery import app as celery

__all__ = ["celery"]
