"""An owner of the shared line, for tests of what the web does with it."""

from __future__ import annotations

import asyncio
from typing import Any

from django.conf import settings as configured

from inference.admission import Ask, Policy
from inference.admission.verbs import Verbs
from inference.pipe import Pipe
from inference.protocol import ReplicaInfo


class Runner:
    """An owner of the line, as far as the web can tell."""

    def __init__(self, *replicas: ReplicaInfo) -> None:
        asyncio.run(self._begin(replicas))

    def ask(self, ask: Ask) -> Any:
        return asyncio.run(self._ask(ask))

    async def _begin(self, replicas: tuple[ReplicaInfo, ...]) -> None:
        async with _Verbs() as (verbs, now):
            await verbs.beat(now, [])
            for replica in replicas:
                await verbs.set_replicas(now, replica.model, [replica])

    async def _ask(self, ask: Ask) -> Any:
        async with _Verbs() as (verbs, now):
            await verbs.beat(now, [])
            return await verbs.ask(now, ask)


class _Verbs:
    async def __aenter__(self) -> tuple[Verbs, float]:
        self.pipe = Pipe(configured.REDIS_URL)
        seconds, micros = await self.pipe.call("TIME")
        return Verbs(self.pipe, "runner", Policy()), int(seconds) * 1000 + int(micros) / 1000

    async def __aexit__(self, *_: object) -> None:
        await self.pipe.close()
