"""The only bridge from async code to the ORM.

`await in_db(service, ...)` runs one synchronous operation on a database thread: one hop an operation,
plain values out, never a QuerySet. The few threads keep a connection each, so a hop costs no handshake and
nothing holds one while it streams. Channels' own bridge is not used: its default serialises all the database
work of a process.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, connections

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 8
# An event loop gives up the interpreter at each system call and waits up to this long to get it back from a
# thread that computes. The default of 5 ms would be paid many times by every streamed token.
sys.setswitchinterval(0.0005)
_threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="db")


def _call(function: Callable[[], T]) -> T:
    try:
        return function()
    except (OperationalError, InterfaceError):
        # The server went away: the next hop of this thread connects anew.
        connections.close_all()
        raise


async def in_db(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a synchronous selector or service on a database thread. Cancelling the caller does not cancel it."""
    return await asyncio.get_running_loop().run_in_executor(_threads, _call, partial(function, *args, **kwargs))
