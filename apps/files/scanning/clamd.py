"""A scan by clamd through its local socket, when one answers. The open file is handed over, not its bytes."""

from __future__ import annotations

import socket
from pathlib import Path

import structlog

from apps.files.types import FileFault, Retryable

CONNECT_S = 2.0
SCAN_S = 120.0
_REPLY_LIMIT = 4096
log = structlog.get_logger(__name__)


def scan(path: Path, socket_path: str) -> bool:
    """Whether clamd looked at the file. False when none listens.

    Raises FileFault `infected`, and Retryable when a clamd that is there fails: a file is never passed
    unscanned because the scanner was busy.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(CONNECT_S)
        try:
            connection.connect(socket_path)
        except OSError:
            return False
        connection.settimeout(SCAN_S)
        try:
            reply = _exchange(connection, path)
        except OSError as error:
            raise Retryable("The malware scanner did not answer.") from error
    if reply.endswith("FOUND"):
        log.warning(
            "files.infected",
            signature=reply.removesuffix("FOUND").rpartition(":")[2].strip(),
        )
        raise FileFault("infected")
    if not reply.endswith("OK"):
        raise Retryable("The malware scanner could not read the file.")
    return True


def _exchange(connection: socket.socket, path: Path) -> str:
    with path.open("rb") as file:
        connection.sendall(b"zFILDES\0")
        socket.send_fds(connection, [b"\0"], [file.fileno()])
        reply = b""
        while not reply.endswith(b"\0") and len(reply) < _REPLY_LIMIT:
            data = connection.recv(1024)
            if not data:
                break
            reply += data
    return reply.rstrip(b"\0\n ").decode("utf-8", "replace")
