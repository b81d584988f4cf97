"""What the child may no longer do once it has started: nothing but read its input and answer.

`enter` is called by the child before it looks at the file. Each layer is taken where the kernel allows it, and
the report says which are in force, so that `doctor` can tell an operator. Starting, timing and killing the
child is `process`'s part.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from apps.files.extraction.sandbox import landlock, seccomp

CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38

MAX_OPEN_FILES = 64
MAX_THREADS = 64


Network = Literal["namespace", "seccomp", "landlock", "none"]
NETWORKS: Mapping[object, Network] = {name: name for name in ("namespace", "seccomp", "landlock")}


@dataclass(frozen=True, slots=True)
class SandboxReport:
    """Which layers hold. `network` is "namespace" (no interfaces at all, and no sockets where `syscalls` also
    holds), "seccomp" (sockets refused), "landlock" (TCP refused) or "none"."""

    network: Network
    syscalls: bool
    files: bool
    privileges: bool

    @property
    def level(self) -> Literal["full", "partial", "limits"]:
        """full: no network, no files but its own, no new processes; limits: only resource limits hold."""
        held = (self.network != "none", self.syscalls, self.files, self.privileges)
        return "full" if all(held) else "partial" if any(held) else "limits"


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    ceiling = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (ceiling, ceiling))


def _limit_resources(*, memory_bytes: int, cpu_s: int, file_bytes: int) -> None:
    _limit(resource.RLIMIT_AS, memory_bytes)
    _limit(resource.RLIMIT_CPU, cpu_s)
    _limit(resource.RLIMIT_FSIZE, file_bytes)
    _limit(resource.RLIMIT_NOFILE, MAX_OPEN_FILES)
    _limit(resource.RLIMIT_CORE, 0)


def _unshare(libc: ctypes.CDLL) -> bool:
    """A user, network and IPC namespace of our own. Fails where the host forbids it, for instance in a container."""
    return bool(libc.unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC) == 0)


def enter(
    *,
    memory_bytes: int,
    cpu_s: int,
    file_bytes: int,
    readable: tuple[str, ...],
    writable: str,
    may_exec: bool,
) -> SandboxReport:
    """Give up everything but reading `readable`, writing below `writable` and, with `may_exec`, replacing itself.

    New processes are refused in any case: a program that is exec'ed takes this one's place.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _limit_resources(memory_bytes=memory_bytes, cpu_s=cpu_s, file_bytes=file_bytes)
    if not hasattr(libc, "prctl"):  # not Linux: resource limits and the parent's deadline are all there is
        return SandboxReport(network="none", syscalls=False, files=False, privileges=False)
    parent = os.getppid()
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # the parent died before the line above could take effect
        os._exit(1)
    privileges = libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    namespace = _unshare(libc)
    if namespace:  # counted a namespace: outside one it would count the whole worker's threads
        _limit(resource.RLIMIT_NPROC, MAX_THREADS)
    files, tcp = landlock.restrict(libc, readable=readable, writable=writable)
    syscalls = seccomp.restrict(libc, may_exec=may_exec)
    network: Network = "namespace" if namespace else "seccomp" if syscalls else "landlock" if tcp else "none"
    return SandboxReport(network=network, syscalls=syscalls, files=files, privileges=privileges)
