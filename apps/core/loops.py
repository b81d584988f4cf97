"""Ending of background tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

PATIENCE_S = 0.2


async def stop_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks until they have ended. Their results and errors are dropped.

    Once is not enough: before Python 3.12 `asyncio.wait_for`, which the Valkey client uses, loses a cancellation
    that comes in the moment in which what it waits for is done.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        done, left = await asyncio.wait(left, timeout=PATIENCE_S)
        for task in done:
            if not task.cancelled():
                task.exception()
