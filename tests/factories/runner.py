"""Executes a run in the test's own process, on scripted replicas: a whole runner, stopped at the run's end."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4

from django.test import override_settings

from apps.conversations.models import Run
from apps.conversations.runner.process import RunnerProcess
from apps.conversations.types import TERMINAL, Checkpoint, ClaimedRun, RunParams
from apps.core.db import in_db
from apps.core.valkey import valkey
from inference.registry import REPLICAS_KEY


def claimed_run(*, lane: str = "interactive", tier: str = "free") -> ClaimedRun:
    """A run as its claim would return it; no row stands behind it."""
    return ClaimedRun(
        id=uuid4(),
        organization_id=uuid4(),
        user_id=uuid4(),
        conversation_id=uuid4(),
        question_id=None,
        answer_id=uuid4(),
        attempt=1,
        requested="auto",
        model="m",
        tier=tier,
        lane=lane,
        priority=0,
        params=RunParams(),
        prompt=(),
        checkpoint=Checkpoint(),
        cancel_requested=False,
    )


def execute(run_id: UUID, *urls: str) -> Run:
    """The run, finished. `urls` as in PARLEY_REPLICA_URLS. Needs a transactional test, in which runs are offered."""
    # Replicas that were published for admission only would be tried too.
    valkey().delete(REPLICAS_KEY)
    with override_settings(REPLICA_URLS=urls or ("fake=fake://a",)):
        asyncio.run(_until_over(run_id))
    return Run.objects.get(id=run_id)


async def _until_over(run_id: UUID) -> None:
    runner = RunnerProcess()
    running = asyncio.create_task(runner.run())
    for _ in range(1_000):
        # What follows an answer begins as its execution goes; a stop before that would leave it out.
        if running.done() or (run_id not in runner.executions and await in_db(_is_over, run_id)):
            break
        await asyncio.sleep(0.02)
    runner.stopping.set()
    await running


def _is_over(run_id: UUID) -> bool:
    return Run.objects.filter(id=run_id, state__in=TERMINAL).exists()
