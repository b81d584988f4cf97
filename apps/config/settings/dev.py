"""One machine, started by `make up`."""

from apps.config.settings.base import *  # noqa: F403
