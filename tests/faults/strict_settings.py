"""The settings of stacks of real processes, for few runs of one person at a time."""

from tests.live_settings import *  # noqa: F403

RUNS_PER_USER = 4
