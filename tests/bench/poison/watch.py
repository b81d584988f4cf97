"""What the workers' processes do meanwhile: which of them die, and the most memory that any of them takes."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

_EVERY_S = 0.05
_KIB = 1 << 10


def children(pid: int) -> list[int]:
    """The process's children of this moment; none when it is gone."""
    found: list[int] = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(word) for word in listed.read_text().split()]
        except OSError:
            continue
    return found


def peak_bytes(pid: int) -> int:
    """The most memory that the process has held so far; 0 when it is gone."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * _KIB
    except OSError:
        pass
    return 0


class Watch(threading.Thread):
    """Looks at workers every 50 ms. A worker's own children are its pool and belong to it for as long as it lives; what
    those start are readers of documents, which come and go."""

    def __init__(self, workers: Sequence[int]) -> None:
        super().__init__(name="watch", daemon=True)
        self._pools = {worker: set(children(worker)) for worker in workers}
        self._over = threading.Event()
        self.deaths = 0
        self.peak_bytes = 0

    def run(self) -> None:
        while not self._over.wait(_EVERY_S):
            self.look()

    def look(self) -> None:
        for worker, pool in self._pools.items():
            now = set(children(worker))
            gone = pool - now
            self.deaths += len(gone)
            pool -= gone
            pool |= now
            readers = [reader for process in now for reader in children(process)]
            self.peak_bytes = max(self.peak_bytes, *map(peak_bytes, (worker, *now, *readers)))

    def stop(self) -> None:
        self._over.set()
        self.join()
