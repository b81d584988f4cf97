"""Whether runs are executed: runners with a live lease, and runs that wait for one; and which budgets are in force."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from apps.conversations.models import Run, Runner
from apps.conversations.types import RunState
from apps.core.checkup import Finding, fail, ok, warn
from inference.admission import Budget, Policy, Tier

# A run that nobody has claimed for this long has no runner that is able to.
WAITING_TOO_LONG = timedelta(seconds=30)


def check() -> list[Finding]:
    return [_runners(), _budgets()]


def _runners() -> Finding:
    now = timezone.now()
    runners = Runner.objects.filter(lease_until__gt=now).count()
    stuck = Run.objects.filter(state=RunState.QUEUED, created_at__lt=now - WAITING_TOO_LONG).count()
    if not runners:
        return fail("runners", f"none alive, {stuck} runs wait", "Start `manage.py runner` (make up does it).")
    if stuck:
        advice = "Is a replica ready? Else start more runners."
        return warn("runners", f"{runners} alive, {stuck} runs have waited for more than 30 s", advice)
    return ok("runners", f"{runners} alive")


def _budgets() -> Finding:
    policy: Policy = settings.ADMISSION_POLICY
    tiers = [
        f"{tier}: user {_in_words(policy.users[tier])}; organization {_in_words(policy.organizations[tier])}"
        for tier in Tier
    ]
    return ok("budgets", ". ".join((f"from {settings.BUDGETS}", *tiers)))


def _in_words(budget: Budget) -> str:
    answers = f"{budget.concurrency} answers" if budget.concurrency else ""
    tokens = f"{budget.tokens_per_s:g} tokens a second" if budget.tokens_per_s else ""
    return ", ".join(filter(None, (answers, tokens))) or "no limit"
