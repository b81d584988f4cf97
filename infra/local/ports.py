"""Ports on loopback: free ones, remembered between starts, and who holds one that is taken."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
from pathlib import Path

# Below the range from which systems hand out ports for outgoing connections, so that those cannot take ours.
CHOICE = range(20_000, 32_000)


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A port nobody listens on, chosen at random so that several checkouts seldom meet."""
    for _ in range(200):
        port = random.choice(CHOICE)  # noqa: S311
        if is_free(port):
            return port
    raise OSError("no free port was found")


class PortBook:
    """Ports by name, kept in a file, so that addresses stay the same from start to start."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._ports: dict[str, int] = json.loads(path.read_text())
        except (OSError, ValueError):
            self._ports = {}

    def port(self, name: str) -> int:
        """The remembered port if it is still free, else a new one."""
        known = self._ports.get(name)
        if known is None or not is_free(known):
            self._ports[name] = free_port()
            self._path.write_text(json.dumps(self._ports))
        return self._ports[name]


def holder(port: int) -> str:
    """Who listens on a port, as `name (process 123)`; empty when the system does not tell."""
    inodes = _listening_inodes(port)
    if not inodes:
        return ""
    for entry in Path("/proc").glob("[0-9]*"):
        if _open_files(entry) & inodes:
            return f"{(entry / 'comm').read_text().strip()} (process {entry.name})"
    return ""


def _open_files(process: Path) -> set[str]:
    links = set()
    try:
        for name in os.listdir(process / "fd"):
            # A file may be closed while we look.
            with contextlib.suppress(FileNotFoundError):
                links.add(os.readlink(process / "fd" / name))
    except OSError:
        return set()
    return links


def _listening_inodes(port: int) -> set[str]:
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            columns = row.split()
            if columns[3] == "0A" and int(columns[1].rpartition(":")[2], 16) == port:
                found.add(f"socket:[{columns[9]}]")
    return found
