"""The settings of real processes for one person who asks as many do."""

from inference.admission import Budget, Policy, Tier
from tests.live_settings import *  # noqa: F403

ADMISSION_POLICY = Policy(users=dict.fromkeys(Tier, Budget()))
