"""A real Celery worker as a process of its own, beside the test's database and Valkey; made to be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

import psutil

from infra.local import processes
from infra.local.layout import REPOSITORY

OPTIONS = (
    "worker", "--without-gossip", "--without-mingle", "--without-heartbeat", "-Q", "ingest,ocr,embed,default",
    "--loglevel", "INFO",
)  # fmt: skip


class Worker:
    """`processes` of pool size, all queues. The database and Valkey are those of the environment."""

    def __init__(self, log: Path, *, size: int = 1, lease_s: float = 2.0, app: str = "apps.config.celery:app") -> None:
        environment = {**os.environ, "PARLEY_FILE_LEASE_S": str(lease_s)}
        name = f"{log.stem}-{os.urandom(3).hex()}@localhost"
        command = (sys.executable, "-m", "celery", "--quiet", "-A", app, *OPTIONS, "-c", str(size), "-n", name)
        with log.open("ab") as output:
            self._child: subprocess.Popen[bytes] = processes.spawn(
                command,
                env=environment,
                cwd=REPOSITORY,
                output=output.fileno(),
            )

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill9()

    def family(self) -> list[psutil.Process]:
        """The worker, its pool, and the children that read documents."""
        try:
            parent = psutil.Process(self._child.pid)
            return [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def kill9(self) -> None:
        """End all of it at once, as a power cut would: nobody gets to say goodbye."""
        for process in self.family():
            _kill(process)
        self._child.wait(10)

    def kill_pool(self) -> None:
        """Kill the processes that do the work and leave the one that started them."""
        for process in self.family()[1:]:
            _kill(process)


def _kill(process: psutil.Process) -> None:
    try:
        process.send_signal(signal.SIGKILL)
    except psutil.NoSuchProcess:
        return
