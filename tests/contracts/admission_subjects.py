"""The verbs in a time of their own, for tests that say what the time is."""

from __future__ import annotations

from collections.abc import Sequence

from inference.admission import Ask, Policy
from inference.admission.verbs import Beat, Granted, NoneReady, Refused, Verbs, digest
from inference.pipe import Pipe
from inference.protocol import ReplicaInfo
from inference.queueing import WaitState

Reply = Granted | WaitState | Refused | NoneReady


class Line:
    """One owner at a time of its own: `now` in milliseconds, moved by the test."""

    def __init__(self, pipe: Pipe, owner: str = "owner", policy: Policy | None = None) -> None:
        self.verbs = Verbs(pipe, owner, policy or Policy())
        self.pipe, self.now = pipe, 1_000_000.0

    async def begin(self, *replicas: ReplicaInfo) -> Line:
        await self.beat()
        for model in {replica.model for replica in replicas}:
            await self.verbs.set_replicas(self.now, model, [r for r in replicas if r.model == model])
        return self

    async def beat(self, *replicas: ReplicaInfo) -> Beat:
        return await self.verbs.beat(self.now, [("m", digest(replicas))] if replicas else [])

    async def ask(self, ask: Ask) -> Reply:
        return await self.verbs.ask(self.now, ask)

    async def release(self, *tickets: str, after_s: float = 0.0, used: int | None = None) -> None:
        self.now += after_s * 1000
        for ticket in tickets:
            assert await self.verbs.release(self.now, ticket, used)

    async def news(self) -> list[str]:
        """Tickets granted from the line since the last look, in order."""
        reply = await self.pipe.call("LPOP", f"adm:feed:{self.verbs.owner}", 1_000)
        return [item.decode().partition("\n")[0] for item in reply or ()]

    async def drain(self, held: Sequence[str], *, grants: int, each_s: float = 0.0) -> list[str]:
        """Release what is held, oldest first, until so many were granted from the line; their order."""
        holding, order = list(held), list[str]()
        while holding and len(order) < grants:
            await self.release(holding.pop(0), after_s=each_s)
            news = await self.news()
            order += news
            holding += news
        return order[:grants]
