"""The test settings for stacks of real processes, with waits that a test can sit through."""

from apps.config.settings.test import *  # noqa: F403

RUN_HEARTBEAT_S = 1.0
RUN_DRAIN_S = 2.0
