"""Writes of this app: accounts, API keys, the usage ledger and rate limits."""

from apps.accounts.services.keys import create_key, revoke_key, touch_key
from apps.accounts.services.limits import check_rate, check_rate_on_loop, peek_rate_on_loop
from apps.accounts.services.signup import create_account, rename_account
from apps.accounts.services.usage import record_usage

__all__ = [
    "check_rate",
    "check_rate_on_loop",
    "create_account",
    "create_key",
    "peek_rate_on_loop",
    "record_usage",
    "rename_account",
    "revoke_key",
    "touch_key",
]
