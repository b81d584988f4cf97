"""Background tasks end when they are told to, even those that miss the first time."""

from __future__ import annotations

import asyncio
import contextlib

from apps.core.loops import stop_tasks


async def test_tasks_end_although_a_cancellation_was_lost() -> None:
    async def deaf() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(60)

    async def failing() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise ValueError("an error on the way out")

    tasks = [asyncio.create_task(deaf()), asyncio.create_task(failing()), asyncio.create_task(asyncio.sleep(0))]
    await asyncio.sleep(0.01)
    async with asyncio.timeout(5):
        await stop_tasks(tasks)
    assert all(task.done() for task in tasks)


async def test_nothing_to_stop() -> None:
    await stop_tasks([])
