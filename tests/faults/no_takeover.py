"""Workers that never take over what another one held, to show that the checkers notice.

    celery -A tests.faults.no_takeover:app worker

A product without leases would do the same: a stage that was begun counts as somebody's for ever.
"""

from __future__ import annotations

from datetime import datetime

import django
from django.db.models import Q

from apps.config.celery import app as app

django.setup()

from apps.files.models import StageState  # noqa: E402
from apps.files.pipeline import leases  # noqa: E402


def _only_waiting(now: datetime) -> Q:
    return Q(state=StageState.PENDING, due_at__lte=now)


leases.due = _only_waiting
