"""Whether runs are executed: runners with a live lease, and runs that wait for one."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from apps.conversations.models import Run, Runner
from apps.conversations.types import RunState
from apps.core.checkup import Finding, fail, ok, warn

# A run that nobody has claimed for this long has no runner that is able to.
WAITING_TOO_LONG = timedelta(seconds=30)


def check() -> list[Finding]:
    now = timezone.now()
    runners = Runner.objects.filter(lease_until__gt=now).count()
    stuck = Run.objects.filter(state=RunState.QUEUED, created_at__lt=now - WAITING_TOO_LONG).count()
    if not runners:
        return [fail("runners", f"none alive, {stuck} runs wait", "Start `manage.py runner` (make up does it).")]
    if stuck:
        advice = "Is a replica ready? Else start more runners."
        return [warn("runners", f"{runners} alive, {stuck} runs have waited for more than 30 s", advice)]
    return [ok("runners", f"{runners} alive")]
