"""A server that answers every request with given bytes, for answers that no proper server would give."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import orjson


@dataclass
class RawServer:
    """`pieces` are written one by one with `pause_s` between; then the connection is closed unless `keep`."""

    pieces: list[bytes]
    pause_s: float = 0.0
    keep: bool = False
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    url: str = ""
    answered: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while request := await self._read(reader):
                self.requests.append(request)
                for piece in self.pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(self.pause_s)
                self.answered.set()
                if not self.keep:
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    @staticmethod
    async def _read(reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
        )
        return head + await reader.readexactly(length)

    def body(self, number: int = -1) -> dict[str, object]:
        value = orjson.loads(self.requests[number].split(b"\r\n\r\n", 1)[1])
        assert isinstance(value, dict)
        return value


@asynccontextmanager
async def raw_server(*pieces: bytes, pause_s: float = 0.0, keep: bool = False) -> AsyncIterator[RawServer]:
    server = RawServer(list(pieces), pause_s, keep)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listener.close()


def head(status: int = 200, **headers: str) -> bytes:
    lines = "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in headers.items())
    return f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode()


def whole(status: int, value: object, **headers: str) -> bytes:
    body = value if isinstance(value, bytes) else orjson.dumps(value)
    return head(status, content_length=str(len(body)), **headers) + body


def sse(*values: object) -> bytes:
    """Events, `[DONE]` as it stands."""
    return b"".join(b"data: " + (v if isinstance(v, bytes) else orjson.dumps(v)) + b"\n\n" for v in values)


def stream(*values: object) -> bytes:
    """A whole event stream with its length."""
    body = sse(*values)
    return head(200, content_type="text/event-stream", content_length=str(len(body))) + body


def token(text: str, finish: str | None = None) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}
