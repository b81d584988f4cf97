"""The usage ledger: exactly one entry a run, whoever reports it and however often."""

from __future__ import annotations

from apps.accounts.models import UsageEntry
from apps.accounts.types import RunUsage


def record_usage(usage: RunUsage) -> None:
    """Append the entry of a finished run; a second report of the same run changes nothing.

    Call it inside the transaction that finishes the run, so that the two are true together.
    """
    entry = UsageEntry(
        organization_id=usage.organization_id,
        user_id=usage.user_id,
        kind="run",
        subject_id=usage.run_id,
        model=usage.model,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
    )
    UsageEntry.objects.bulk_create([entry], ignore_conflicts=True)


USAGE_OF_RUN = """
    INSERT INTO accounts_usageentry (
        id, organization_id, user_id, kind, subject_id, model, prompt_tokens, cached_tokens, completion_tokens,
        created_at)
    SELECT %(entry_id)s, organization_id, user_id, 'run', id, model, prompt_tokens, cached_tokens, completion_tokens,
        now()
    FROM run
    ON CONFLICT DO NOTHING
"""
"""`record_usage` as a part of the statement that finishes a run, whose row is named `run`."""
