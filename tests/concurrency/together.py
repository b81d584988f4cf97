"""Calls that happen at the same moment, each on a thread and a database connection of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from django.db import connections


def together(calls: Sequence[Callable[[], object]]) -> list[Any]:
    """Start all calls behind one barrier; what each returned or raised, in order."""
    barrier = Barrier(len(calls))

    def run(call: Callable[[], object]) -> object:
        try:
            barrier.wait(timeout=30)
            return call()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(max_workers=len(calls)) as pool:
        return list(pool.map(run, calls))
