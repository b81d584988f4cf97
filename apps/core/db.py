"""The only bridge from async code to the ORM.

`await in_db(service, ...)` runs one synchronous operation on a database thread: one hop an operation,
plain values out, never a QuerySet. The few threads keep a connection each, so a hop costs no handshake and
nothing holds one while it streams. Channels' own bridge is not used: its default serialises all the database
work of a process.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

import psycopg
from django.db import InterfaceError, OperationalError, connection, connections

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 8
# An event loop gives up the interpreter at each system call and waits up to this long to get it back from a
# thread that computes. The default of 5 ms would be paid many times by every streamed token.
sys.setswitchinterval(0.0005)
_threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="db")
_slow_threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="db-slow")


class _Outages:
    """How often the server was seen to be away. A thread whose connections are from before that drops them."""

    seen = 0
    known = threading.local()


def _call(function: Callable[[], T]) -> T:
    seen = _Outages.seen
    if getattr(_Outages.known, "seen", seen) != seen:
        connections.close_all()
    _Outages.known.seen = seen
    try:
        return function()
    except (OperationalError, InterfaceError):
        # The server went away: the next hop of every thread connects anew, so that each outage is told once.
        _Outages.seen += 1
        raise


async def in_db(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a synchronous selector or service on a database thread. Cancelling the caller does not cancel it."""
    return await asyncio.get_running_loop().run_in_executor(_threads, _call, partial(function, *args, **kwargs))


async def in_db_slowly(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """As `in_db`, for services that take seconds: few at a time, and never on the threads of all others."""
    return await asyncio.get_running_loop().run_in_executor(_slow_threads, _call, partial(function, *args, **kwargs))


def prepared(statement: str, values: Mapping[str, Any] | Sequence[Any]) -> list[tuple[Any, ...]]:
    """The rows of a statement that the server parses and plans once a connection: for the hot paths.

    Runs on Django's connection and in its transaction. The server binds the parameters, so where it cannot tell their
    type from the place they stand in, the statement says it (`%(n)s::int`). JSON comes back as text.
    """
    connection.ensure_connection()
    connection.validate_no_broken_transaction()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(statement, values, prepare=True)
        return cursor.fetchall() if cursor.description else []
