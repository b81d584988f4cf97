"""Tells the person at the terminal how far the models are."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from infra.local.console import paint, say
from infra.local.layout import Layout

if TYPE_CHECKING:
    from inference.protocol import ModelInfo

EVERY = 2.0
# Longer than the slowest start seen on two cores; after that the pages and logs tell.
PATIENCE = 1200.0


class ModelWatch:
    """Reads the registry of replicas until a model is ready."""

    def __init__(self, layout: Layout, redis_url: str) -> None:
        self._layout = layout
        self._redis_url = redis_url

    async def announce(self, url: str, took: float) -> None:
        """Say that the pages serve, then how the models are coming along. The URL ends each announcement."""
        say()
        say(paint(f"  Parley is up after {took:.1f} s. Open  {url}", "green"))
        began = time.monotonic()
        said = ""
        while time.monotonic() - began < PATIENCE:
            models = await asyncio.to_thread(self.read)
            ready = [model.name for model in models if model.state == "ready"]
            if ready:
                say(paint(f"  {', '.join(ready)} is ready to answer. Open  {url}", "green"))
                return
            text = waiting_text(models)
            if text != said:
                said = text
                say(f"  {text}")
            await asyncio.sleep(EVERY)
        say(paint(f"  No model is ready yet; see {self._layout.logs / 'inference.log'}.", "yellow"))

    def read(self) -> Sequence[ModelInfo]:
        """The models that the registry knows; none while it cannot be read."""
        import redis

        from inference.client import read_models

        client = redis.Redis.from_url(self._redis_url, socket_timeout=2, socket_connect_timeout=1)
        try:
            return read_models(client)
        except redis.RedisError:
            return ()
        finally:
            client.close()


def waiting_text(models: Sequence[ModelInfo]) -> str:
    """One line about models that do not answer yet."""
    if not models:
        return "The model is being started; the page says when it is ready."
    parts = []
    for model in models:
        left = f", about {-(-model.eta_s // 10) * 10} s left" if model.eta_s else ""
        parts.append(f"{model.name}: {model.phase or model.state}{left}")
    return "; ".join(parts)
