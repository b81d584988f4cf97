"""The threads that work in the database: what a restart of the server costs those who ask next."""

from __future__ import annotations

import asyncio
from threading import Barrier

import pytest
from django.db import OperationalError, connection

from apps.core.db import THREADS, in_db

pytestmark = pytest.mark.django_db(transaction=True)


def _backend(together: Barrier) -> int:
    """The server process of this thread's connection. The barrier makes every thread take one call."""
    together.wait(10)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


async def _backends() -> list[int]:
    together = Barrier(THREADS)
    return list(await asyncio.gather(*(in_db(_backend, together) for _ in range(THREADS))))


def _end(backends: list[int]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(id) FROM unnest(%s::int[]) id WHERE id <> pg_backend_pid()", [backends]
        )


async def test_an_outage_is_told_once_not_once_a_thread() -> None:
    before = await _backends()
    assert len(set(before)) == THREADS
    # From the thread of one of them, which so keeps its own.
    await in_db(_end, before)
    failures = 0
    for _ in range(THREADS * 2):
        try:
            await in_db(_backend, Barrier(1))
        except OperationalError:
            failures += 1
    assert failures <= 1
    after = await _backends()
    assert len(set(after)) == THREADS
    assert len(set(after) & set(before)) <= 1
