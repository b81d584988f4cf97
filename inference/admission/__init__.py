"""Who runs where and when, decided in one place for all processes: shared admission over Valkey.

`types` has the words, `lua/` decides, `verbs` calls it, `client` is what a process holds, `gate` how runs are accepted,
`budgets` what the operator may set.
"""

from inference.admission.budgets import DEFAULT_BUDGETS, BudgetsError, read_policy
from inference.admission.client import Admission
from inference.admission.gate import Gate
from inference.admission.policy import Budget, Policy
from inference.admission.types import Ask, Grant, Lane, Standing, Tier, Waiting

__all__ = [
    "DEFAULT_BUDGETS",
    "Admission",
    "Ask",
    "Budget",
    "BudgetsError",
    "Gate",
    "Grant",
    "Lane",
    "Policy",
    "Standing",
    "Tier",
    "Waiting",
    "read_policy",
]
