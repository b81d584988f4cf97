"""The settings of stacks of real processes, for few runs of one person at a time."""

from inference.admission import Budget, Policy, Tier
from tests.live_settings import *  # noqa: F403

ADMISSION_POLICY = Policy(users=dict.fromkeys(Tier, Budget(concurrency=4)))
