"""Who runs where and when, decided in one place for all processes: shared admission over Valkey.

`types` has the words, `lua/` decides, `verbs` calls it, `client` is what a process holds.
"""

from inference.admission.client import Admission
from inference.admission.policy import Budget, Policy
from inference.admission.types import Ask, Grant, Lane, Standing, Tier, Waiting

__all__ = ["Admission", "Ask", "Budget", "Grant", "Lane", "Policy", "Standing", "Tier", "Waiting"]
