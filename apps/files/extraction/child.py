"""One child process as its parent sees it: started in an empty folder with a bare environment, read with a
deadline and a bound on its output, and killed with all it may have started."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from apps.core.scratch import Scratch
from apps.files.extraction.types import Limits, Reason

ROOT = Path(__file__).resolve().parents[3]
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); sys.path.append(sys.argv.pop(1)); "
    "from apps.files.extraction.__main__ import main; main()"
)
COMMAND = (sys.executable, "-I", "-S", "-c", _BOOT, str(ROOT), sysconfig.get_path("platlib"))
"""Runs `python -m apps.files.extraction` without the environment, the user's packages, the working folder, or what
other packages would run at the start of every interpreter."""
_ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "PATH": os.defpath,
    "OMP_THREAD_LIMIT": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
_READ_SIZE = 1 << 18
LINE_MAX_BYTES = 16 << 20
_EXIT_GRACE_S = 1.0
_SAID_LAST = 4 << 10
_NO_MEMORY = (b"memory allocation of", b"bad_alloc", b"MemoryError", b"annot allocate memory")
_NEAR_LIMIT = 0.85
_MAX_RSS_UNIT = 1 if sys.platform == "darwin" else 1 << 10


class ChildLost(Exception):
    """The child ended, or was ended, before it had said all."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


def readable_paths() -> tuple[str, ...]:
    """All that a child may read besides its input, which it is handed as an open descriptor."""
    return (
        sys.prefix,
        sys.base_prefix,
        str(ROOT / "apps"),
        "/usr",
        "/lib",
        "/lib64",
        "/etc/ld.so.cache",
        "/etc/fonts",
        "/dev/urandom",
        "/proc/self",
        "/proc/cpuinfo",
        "/proc/meminfo",
        "/sys/devices/system/cpu",
    )


def _readable(descriptor: int, wait_s: float) -> bool:
    """Whether there is something to read, or the end, within the time. Not `select`: numbers may be above 1,024."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(wait_s, 0.0) * 1000))


class Child:
    """A running child. Use as a context manager: leaving it kills whatever is left and removes its folder."""

    def __init__(
        self,
        job: Mapping[str, Any],
        limits: Limits,
        *,
        source: int | None = None,
        secret: str | None = None,
        also_readable: Sequence[str] = (),
        command: Sequence[str] = COMMAND,
    ) -> None:
        """`secret` is what the child finds on its standard input. It fits into a pipe, so nobody waits for anybody."""
        self._limits = limits
        self._buffer = bytearray()
        self._received = 0
        self.waited_s = 0.0
        self._ended = False
        self._held_bytes = 0
        self._scratch = Scratch("read")
        folder = str(self._scratch.path)
        full = {
            **job,
            "source": source,
            "scratch": folder,
            "readable": (*readable_paths(), *also_readable),
            "memory_bytes": limits.memory_bytes,
            "cpu_s": limits.cpu_s,
            "scratch_bytes": limits.scratch_bytes,
        }
        self._last_words = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - until `__exit__`
        try:
            self._process = subprocess.Popen(
                [*command, json.dumps(full)],
                stdin=subprocess.DEVNULL if secret is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._last_words,
                cwd=folder,
                env=_ENVIRONMENT,
                pass_fds=() if source is None else (source,),
                start_new_session=True,
            )
        except OSError:
            self._last_words.close()
            self._scratch.close()
            raise
        if self._process.stdin is not None and secret is not None:
            with suppress(BrokenPipeError), self._process.stdin as pipe:
                pipe.write(secret.encode())
        assert self._process.stdout is not None
        self._pipe = self._process.stdout.fileno()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end(grace_s=0.0)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._last_words.close()
        self._scratch.close()

    def _end(self, grace_s: float) -> int:
        """Kill the child's whole group and return how the child itself ended.

        It is reaped last: until then its number, which is the group's too, cannot be taken by anyone else.
        """
        if not self._ended:
            self._ended = True
            if grace_s > 0 and hasattr(os, "pidfd_open"):
                descriptor = os.pidfd_open(self._process.pid)
                try:
                    _readable(descriptor, grace_s)
                finally:
                    os.close(descriptor)
            with suppress(ProcessLookupError, PermissionError):  # all gone; macOS says the latter of zombies
                os.killpg(self._process.pid, signal.SIGKILL)
            _, status, usage = os.wait4(self._process.pid, 0)
            self._process.returncode = os.waitstatus_to_exitcode(status)
            self._held_bytes = usage.ru_maxrss * _MAX_RSS_UNIT
        return self._process.wait()

    def _fill(self, wait_s: float) -> bool:
        """Read once more; False at the end. Raises ChildLost when time or output is used up."""
        wait_s = min(wait_s, self._limits.wall_s - self.waited_s)
        started = time.monotonic()
        ready = _readable(self._pipe, wait_s)
        self.waited_s += time.monotonic() - started
        if not ready:
            self._end(grace_s=0.0)
            raise ChildLost(Reason.TIMED_OUT)
        data = os.read(self._pipe, _READ_SIZE)
        self._received += len(data)
        if self._received > self._limits.output_bytes:
            self._end(grace_s=0.0)
            raise ChildLost(Reason.TOO_LARGE)
        self._buffer += data
        return bool(data)

    def lost(self) -> ChildLost:
        """Why a child that closed its output did not finish."""
        status = self._end(grace_s=_EXIT_GRACE_S)
        if status == -signal.SIGXCPU:
            return ChildLost(Reason.TIMED_OUT)
        return ChildLost(Reason.OUT_OF_MEMORY if status and self._lacked_memory() else Reason.CRASHED)

    def _lacked_memory(self) -> bool:
        """Libraries end the process when they are refused memory: it then held nearly all it might, or said so."""
        self._last_words.seek(max(0, self._last_words.seek(0, os.SEEK_END) - _SAID_LAST))
        said = self._last_words.read(_SAID_LAST)
        return self._held_bytes > _NEAR_LIMIT * self._limits.memory_bytes or any(word in said for word in _NO_MEMORY)

    def read_line(self, wait_s: float) -> bytes:
        """The next line, without its end. Raises ChildLost after `wait_s` without one, or when there is no more."""
        deadline = time.monotonic() + wait_s
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > LINE_MAX_BYTES:
                self._end(grace_s=0.0)
                raise ChildLost(Reason.TOO_LARGE)
            if not self._fill(deadline - time.monotonic()):
                raise self.lost()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def read_rest(self, wait_s: float, limit: int) -> bytes:
        """All that is left of the output, at most `limit` bytes. Raises ChildLost."""
        deadline = time.monotonic() + wait_s
        while self._fill(deadline - time.monotonic()):
            if len(self._buffer) > limit:
                self._end(grace_s=0.0)
                raise ChildLost(Reason.TOO_LARGE)
        return bytes(self._buffer)

    def read_exactly(self, wait_s: float, size: int) -> bytes:
        """The next `size` bytes. Raises ChildLost after `wait_s` without them, or when there are no more."""
        deadline = time.monotonic() + wait_s
        while len(self._buffer) < size:
            if not self._fill(deadline - time.monotonic()):
                raise self.lost()
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def succeeded(self) -> bool:
        """Whether the child, its output closed, ended by itself with status 0."""
        return self._end(grace_s=_EXIT_GRACE_S) == 0
