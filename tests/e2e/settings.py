"""The product as tests run it, with answers short enough for a demonstration model that repeats itself."""

from apps.config.settings.test import *  # noqa: F403

RUN_MAX_OUTPUT_TOKENS = 160
