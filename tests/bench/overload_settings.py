"""The settings of real processes for one person who asks as many do."""

from tests.live_settings import *  # noqa: F403

RUNS_PER_USER = 10_000
RUNS_PER_USER_PER_MINUTE = 1_000_000
