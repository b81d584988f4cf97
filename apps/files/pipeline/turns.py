"""Sandboxed children of web processes: few at a time, and few that wait for one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from apps.core.errors import Overloaded

_WAIT_S = 10.0
_working = threading.BoundedSemaphore(2)
# Few may wait: each that does keeps a thread of the web process from everybody else.
_admitted = threading.BoundedSemaphore(6)


@contextmanager
def turn() -> Iterator[None]:
    """Raises Overloaded when too many wait already."""
    with ExitStack() as held:
        for gate, wait_s in ((_admitted, 0.0), (_working, _WAIT_S)):
            if not gate.acquire(timeout=wait_s):
                raise Overloaded("Too many files are being opened. Try again in a moment.", retry_after_s=1)
            held.callback(gate.release)
        yield
