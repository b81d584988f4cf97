"""`/ws/notifications`: what changed, told to a person's open tabs over one socket each.

One Valkey subscription a process serves all sockets. A slow or absent tab misses notes and loses nothing: it
fetches again when it reconnects.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import lru_cache
from typing import Any
from uuid import UUID

import redis
import structlog
from channels.generic.websocket import AsyncWebsocketConsumer

from apps.accounts.public import actor_of_scope, origin_is_ours
from apps.core.notify import user_channel
from apps.core.valkey import new_async_valkey

log = structlog.get_logger(__name__)
MAX_PENDING = 200
UNAUTHENTICATED = 4401


class Hub:
    """The process's subscriptions: channel name -> sockets."""

    def __init__(self) -> None:
        self.valkey = new_async_valkey(max_connections=4)
        self.sockets: dict[str, set[NotificationConsumer]] = {}
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def join(self, channel: str, socket: NotificationConsumer) -> None:
        self.sockets.setdefault(channel, set()).add(socket)
        self._changed.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def leave(self, channel: str, socket: NotificationConsumer) -> None:
        group = self.sockets.get(channel, set())
        group.discard(socket)
        if not group:
            self.sockets.pop(channel, None)
            self._changed.set()

    async def _run(self) -> None:
        while True:
            try:
                await self._serve()
            except (redis.RedisError, OSError) as error:
                log.warning("notifications.away", error=type(error).__name__)
                await asyncio.sleep(1)

    async def _serve(self) -> None:
        subscribed: set[str] = set()
        async with self.valkey.pubsub() as pubsub:
            while True:
                wanted = set(self.sockets)
                if new := wanted - subscribed:
                    await pubsub.subscribe(*new)
                if old := subscribed - wanted:
                    await pubsub.unsubscribe(*old)
                subscribed = wanted
                self._changed.clear()
                if not wanted:
                    await self._changed.wait()
                    continue
                await self._relay(pubsub)

    async def _relay(self, pubsub: Any) -> None:
        """Deliver notes until the set of channels changes."""
        while not self._changed.is_set():
            note = await pubsub.get_message(ignore_subscribe_messages=True, timeout=0.25)
            if note is None:
                continue
            for socket in list(self.sockets.get(note["channel"].decode(), ())):
                socket.offer(note["data"])


@lru_cache(maxsize=1)
def hub() -> Hub:
    return Hub()


class NotificationConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """One tab. Refuses foreign origins and people who are not signed in."""

    channel = ""

    async def connect(self) -> None:
        actor = await actor_of_scope(self.scope) if origin_is_ours(self.scope) else None
        await self.accept()
        if actor is None:
            await self.close(UNAUTHENTICATED)
            return
        self.pending: asyncio.Queue[bytes] = asyncio.Queue(MAX_PENDING)
        self.channel = user_channel(UUID(str(actor.user_id)))
        self.sender = asyncio.create_task(self._send_all())
        await hub().join(self.channel, self)

    def offer(self, note: bytes) -> None:
        with contextlib.suppress(asyncio.QueueFull):
            self.pending.put_nowait(note)

    async def _send_all(self) -> None:
        while True:
            await self.send(text_data=(await self.pending.get()).decode())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if text_data == "ping":
            await self.send(text_data="pong")

    async def disconnect(self, code: int) -> None:
        if self.channel:
            self.sender.cancel()
            await hub().leave(self.channel, self)
