"""Servers: HTTPS by default, JSON logs."""

from apps.config.settings.base import *  # noqa: F403
from apps.config.settings.base import PUBLIC_URL

SECURE_HSTS_SECONDS = 31_536_000 if PUBLIC_URL.startswith("https://") else 0
