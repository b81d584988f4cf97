"""What other apps may use of accounts."""

from apps.accounts.public.identity import actor_of, actor_of_scope, origin_is_ours
from apps.accounts.selectors import get_account, has_accounts, storage_limits
from apps.accounts.services import (
    check_rate,
    check_rate_on_loop,
    create_account,
    create_key,
    peek_rate_on_loop,
    record_usage,
)
from apps.accounts.services.limits import Allowance
from apps.accounts.services.usage import USAGE_OF_RUN

__all__ = [
    "USAGE_OF_RUN",
    "Allowance",
    "actor_of",
    "actor_of_scope",
    "check_rate",
    "check_rate_on_loop",
    "create_account",
    "create_key",
    "get_account",
    "has_accounts",
    "origin_is_ours",
    "peek_rate_on_loop",
    "record_usage",
    "storage_limits",
]
