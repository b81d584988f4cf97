"""The least that a Channels application can do for a stream: an AsyncHttpConsumer that passes an upstream's bytes on.

No account, no database, no log: whoever reads a figure of ours sees beside it what the frame alone costs. Run by
uvicorn as ours is, with PASSTHROUGH_UPSTREAM naming the replica.
"""

from __future__ import annotations

import asyncio
import os

import orjson
from django.conf import settings

if not settings.configured:
    settings.configure()

from channels.generic.http import AsyncHttpConsumer
from channels.routing import ProtocolTypeRouter

from tests.bench.load import Failed, Wire

UPSTREAM = os.environ.get("PASSTHROUGH_UPSTREAM", "")
_idle: list[Wire] = []


class Passthrough(AsyncHttpConsumer):  # type: ignore[misc]
    """One request up, its answer down."""

    async def handle(self, body: bytes) -> None:
        wire = _idle.pop() if _idle else Wire(UPSTREAM, timeout=3_600)
        arrived: asyncio.Queue[bytes | None] = asyncio.Queue()
        wire.watch = arrived.put_nowait
        asked = asyncio.create_task(wire.request("POST", self.scope["path"], {}, orjson.loads(body)))
        asked.add_done_callback(lambda _: arrived.put_nowait(None))
        await self.send_headers(headers=[(b"content-type", b"text/event-stream")])
        try:
            while (piece := await arrived.get()) is not None:
                await self.send_body(piece, more_body=True)
                wire.pieces.clear()
        finally:
            asked.cancel()
        try:
            await asked
        except (Failed, OSError):
            wire.close()
        _idle.append(wire)
        await self.send_body(b"")


application = ProtocolTypeRouter({"http": Passthrough.as_asgi()})
