"""The usage ledger: one entry a run, and no way to change one."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction

from apps.accounts.models import UsageEntry
from apps.accounts.public import record_usage
from apps.accounts.types import RunUsage

pytestmark = pytest.mark.django_db


def usage() -> RunUsage:
    return RunUsage(
        organization_id=uuid4(),
        user_id=uuid4(),
        run_id=uuid4(),
        model="smollm2-135m",
        prompt_tokens=120,
        cached_tokens=64,
        completion_tokens=40,
    )


def test_a_run_is_counted_once_whoever_reports_it() -> None:
    used = usage()
    record_usage(used)
    record_usage(replace(used, completion_tokens=41))
    record_usage(usage())
    assert UsageEntry.objects.filter(subject_id=used.run_id).values_list("completion_tokens", flat=True).get() == 40
    assert UsageEntry.objects.count() == 2


def test_an_entry_cannot_be_changed_or_deleted() -> None:
    record_usage(usage())
    for change in (lambda: UsageEntry.objects.update(completion_tokens=0), lambda: UsageEntry.objects.all().delete()):
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            change()
    assert UsageEntry.objects.get().completion_tokens == 40
