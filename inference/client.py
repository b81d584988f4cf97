"""What the rest of the product uses to get an answer: a pool of replicas, and a reservation on one of them.

Responsible for: keeping the registry fresh, choosing the least loaded ready replica, waiting in a bounded line, and
probing replicas that failed before they are used again. Works from Valkey (published by the supervisor) and from a
list of URLs that it checks itself. Leaves to the caller: retries, resuming, and what a reader is told.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from redis.asyncio import Redis as AsyncRedis
from redis.exceptions import RedisError

from inference.admission import Admission, Ask, Lane, Tier
from inference.breaker import spread
from inference.engines.factory import make_engine
from inference.local_line import LocalLine, Where
from inference.members import Member
from inference.prober import PROBE_S, StaticReplicas
from inference.probing import BreakerProbes
from inference.protocol import (
    Capacity,
    ChatMessage,
    Engine,
    EngineFailed,
    EngineOverloaded,
    EngineUnavailable,
    FailureKind,
    InferenceError,
    ModelInfo,
    ModelState,
    NoReplica,
    Purpose,
    ReplicaInfo,
    ReplicaState,
    line_name,
)
from inference.quality import Answers
from inference.queueing import OnWait, WaitState
from inference.registry import (
    CHAT,
    Record,
    fetch_records,
    read_models,
    read_records,
    summarize,
)
from inference.routing.candidates import candidates_of
from inference.routing.types import Candidate
from inference.verdicts import Verdicts

__all__ = [
    "AUTO",
    "Admission",
    "Ask",
    "Lane",
    "Lease",
    "OnWait",
    "PoolLimits",
    "ReplicaPool",
    "Tier",
    "WaitState",
    "read_models",
    "read_records",
]

log = logging.getLogger(__name__)

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """`max_waiting` bounds the line of one model in this process; `max_wait_s` bounds the time in it. `probe_s`: how
    long a replica that failed may take for a short answer."""

    refresh_s: float = 1.0
    max_waiting: int = 256
    max_wait_s: float = 120.0
    merge_s: float = 0.02
    probe_s: float = PROBE_S


@dataclass(eq=False, slots=True)
class Lease:
    """A slot on a replica, held until the `async with` ends."""

    engine: Engine
    replica: ReplicaInfo
    model: ModelInfo
    waited_s: float
    _judge: Callable[[InferenceError | None, float], None] = field(repr=False)
    _asked_at: float = field(default_factory=time.monotonic, repr=False)
    _judged: bool = field(default=False, repr=False)
    _spend: Callable[[int], None] = field(default=lambda tokens: None, repr=False)

    def report(self, error: InferenceError | None) -> None:
        """Tell the pool how it went, when the error does not leave the `async with` by itself. None: it went well."""
        self._judged = True
        self._judge(error, self._asked_at)

    def spent(self, tokens: int) -> None:
        """How many tokens of the reservation were really used, told before the `async with` ends."""
        self._spend(tokens)

    def end(self) -> None:
        """The `async with` was left without an error: it went well, unless something else was reported."""
        if not self._judged:
            self.report(None)


class ReplicaPool:
    """`replica_urls`: `model=url` pairs as in PARLEY_REPLICA_URLS, checked by the pool itself and published for
    other processes. `redis_url` may be empty where there is nothing but those. `admission` decides for all processes
    together; without it, or while it is away, this process has a line of its own. `purposes`: models for anything else
    do not exist here. `failures` counts answers that failed, by model and kind; `answers` is told by the caller how
    those of each model were, for all processes."""

    def __init__(
        self,
        redis_url: str,
        *,
        replica_urls: str | Sequence[str] = (),
        limits: PoolLimits = PoolLimits(),
        engine_for: Callable[[ReplicaInfo], Engine] | None = None,
        admission: Admission | None = None,
        purposes: Collection[Purpose] = CHAT,
    ) -> None:
        self.limits = limits
        self._redis: AsyncRedis | None = _connect(redis_url) if redis_url else None
        self._engine_for = engine_for or (lambda info: make_engine(info, merge_s=limits.merge_s))
        self._static = StaticReplicas(replica_urls, self._engine_for)
        self._members: dict[str, Member] = {}
        self._admission, self._purposes = admission, purposes
        self._line = LocalLine(
            lambda where: self._members_of(*where),
            self._eta_of,
            max_waiting=limits.max_waiting,
            max_wait_s=limits.max_wait_s,
        )
        self._models: tuple[ModelInfo, ...] = ()
        self._tasks: list[asyncio.Task[None]] = []
        self._closing: set[asyncio.Task[None]] = set()
        self._probes = BreakerProbes(self._engine, self._probed, limits.probe_s)
        self._verdicts = Verdicts()
        self.failures: Counter[tuple[str, FailureKind]] = Counter()
        self.answers = Answers()

    # ------------------------------------------------ life

    async def start(self) -> None:
        """Returns after a first look at the registry and at the URLs; keeps both fresh until `stop`."""
        await self._static.probe()
        if self._admission is not None:
            await self._admission.start()
        await self.refresh()
        self._tasks = [
            asyncio.create_task(self._keep_fresh(), name="replica-pool"),
            asyncio.create_task(self._static.probe_always(), name="replica-probes"),
        ]

    async def stop(self) -> None:
        left = {*self._tasks, *self._probes.tasks}
        while left:
            # Once is not enough: before Python 3.12 `asyncio.wait_for`, in the Valkey client, can lose a cancellation.
            for task in left:
                task.cancel()
            _, left = await asyncio.wait(left, timeout=0.2)
        await asyncio.gather(*self._closing, return_exceptions=True)
        self._tasks = []
        self._line.stop()
        if self._admission is not None:
            await self._admission.stop()
        engines = [m.engine for m in self._members.values() if m.engine is not None]
        self._members = {}
        await asyncio.gather(*(engine.close() for engine in engines), return_exceptions=True)
        await self._static.close()
        if self._redis is not None:
            with suppress(RedisError, OSError):
                await self.answers.publish(self._redis)
            await self._redis.aclose()

    async def _keep_fresh(self) -> None:
        while True:
            await asyncio.sleep(spread(self.limits.refresh_s))
            await self.refresh()
            self._probes.begin(self._members.values())

    async def refresh(self) -> None:
        """Read the registry now. When it cannot be reached the last known state stays in place, and when it has
        forgotten a replica (restarted empty), that one stays until its own expiry."""
        known = {key: member.record for key, member in self._members.items()}
        fetched: tuple[Record, ...] = ()
        if self._redis is None:
            known = {}
        else:
            try:
                await self._static.publish(self._redis)
                await self._verdicts.publish(self._redis, self.replicas())
                await self.answers.publish(self._redis)
                fetched = await fetch_records(self._redis)
                known = {k: r for k, r in known.items() if r.replica.expires_at >= time.time()}
            except (RedisError, OSError) as error:
                log.warning("the replica registry cannot be read: %s", error)
        fresh = {r.replica.id: r for r in (*self._static.records(), *fetched) if r.card.purpose in self._purposes}
        self._absorb(known | fresh)

    def _absorb(self, records: dict[str, Record]) -> None:
        for gone in self._members.keys() - records.keys():
            self._retire(self._members.pop(gone))
        for key, record in records.items():
            member = self._members.get(key)
            if member is None or member.info.url != record.replica.url:
                if member is not None:
                    self._retire(member)
                self._members[key] = Member(record, others=record.replica.running + record.replica.waiting)
                continue
            member.update(record)
        self._summarize()
        if self._admission is not None:
            infos = (member.info for member in self._members.values())
            self._admission.set_replicas([info for info in infos if info.state is ReplicaState.READY])
        self._line.serve()

    def _summarize(self) -> None:
        self._models = summarize((member.seen() for member in self._members.values()), self._purposes)

    def _retire(self, member: Member) -> None:
        """Close the engine once its last answer is over: an answer in progress must not lose its connection."""
        member.retired = True
        if not member.mine and member.engine is not None:
            task = asyncio.create_task(member.engine.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _probed(self, member: Member) -> None:
        self._summarize()
        self._line.serve()

    # ------------------------------------------------ what there is

    def models(self) -> tuple[ModelInfo, ...]:
        return self._models

    def resolve(self, model: str, region: str = "") -> ModelInfo:
        """The model a request means, as it is in a region: `auto` is the default one if it is ready, else any ready
        one, else the default. NoReplica (`known` false) for a name that no replica there serves."""
        models = self._models
        if region:
            models = summarize(m.seen() for m in self._members.values() if m.info.region == region)
        if model == AUTO and models:
            return next((m for m in models if m.state is ModelState.READY), models[0])
        found = next((m for m in models if m.id == model), None)
        if found is None:
            raise NoReplica(model, known=model == AUTO)
        return found

    def replicas(self) -> tuple[ReplicaInfo, ...]:
        """As this process sees them: a replica that keeps failing here is quarantined, whatever was published."""
        return tuple(m.seen().replica for m in self._members.values())

    def usable(self, model: str, region: str = "") -> tuple[ReplicaInfo, ...]:
        """The replicas of a model that may get answers at this moment."""
        now = time.monotonic()
        return tuple(m.info for m in self._members_of(model, region) if m.is_usable(now))

    def candidates(self) -> tuple[Candidate, ...]:
        """The models as routing weighs them, as this process sees their replicas."""
        return candidates_of(member.seen() for member in self._members.values())

    def capacity(self, model: str) -> Capacity:
        ready = [m for m in self._members_of(model) if m.is_ready]
        return Capacity(
            slots=sum(m.info.slots for m in ready),
            running=sum(m.mine + m.others for m in ready),
            waiting=self._line.waiting((model, "")),
        )

    async def count_tokens(self, model: str, messages: Sequence[ChatMessage], region: str = "") -> int:
        """Prompt tokens of a chat by the model's own tokenizer, told by a replica in the region. NoReplica when none
        is known."""
        name = self.resolve(model, region).id
        members = sorted(self._members_of(name, region), key=lambda m: not m.is_ready)
        if not members:
            raise NoReplica(name)
        return await self._engine(members[0]).count_tokens(messages)

    def _members_of(self, model: str, region: str = "") -> list[Member]:
        return [m for m in self._members.values() if m.record.card.id == model and region in ("", m.info.region)]

    def _eta_of(self, where: Where) -> float | None:
        seen = summarize(m.seen() for m in self._members_of(*where))
        return seen[0].eta_s if seen else None

    def _engine(self, member: Member) -> Engine:
        if member.engine is None:
            member.engine = self._engine_for(member.info)
        return member.engine

    # ------------------------------------------------ reservations

    @asynccontextmanager
    async def reserve(self, ask: Ask, *, on_wait: OnWait | None = None) -> AsyncIterator[Lease]:
        """A place on a ready replica of the asked model, in the asked region, after a wait in line when all are taken.

        `on_wait` is called in the event loop, with the position when the wait begins and each time it changes.
        Raises NoReplica, Overloaded, and EngineUnavailable when the replica went away at this moment.
        """
        info = self.resolve(ask.model, ask.region)
        ask = replace(ask, model=info.id)
        began = time.monotonic()
        async with AsyncExitStack() as place:
            member = await self._place(ask, on_wait, place)
            got = time.monotonic()
            lease = Lease(self._engine(member), member.info, info, got - began, partial(self._judge, member))
            if self._admission is not None:
                lease._spend = partial(self._admission.used, ask.ticket)
            try:
                yield lease
            except (EngineFailed, EngineUnavailable, EngineOverloaded) as error:
                lease.report(error)
                raise
            else:
                lease.end()
                self._line.measure((info.id, ask.region), time.monotonic() - got)
            finally:
                member.mine -= 1
                if member.retired:
                    self._retire(member)
                self._line.serve()

    def abandon(self, ticket: str) -> None:
        """Give up a place that was asked for in another process and will not be used."""
        if self._admission is not None:
            self._admission.abandon(ticket)

    def _judge(self, member: Member, error: InferenceError | None, asked_at: float) -> None:
        member.judge(error, asked_at)
        if isinstance(error, EngineFailed | EngineUnavailable):
            self.failures[member.record.card.id, error.kind] += 1

    async def _place(self, ask: Ask, on_wait: OnWait | None, place: AsyncExitStack) -> Member:
        """A member with this place counted on it: by the shared admission, or by our own line while that is away."""
        members = self._members_of(ask.model, ask.region)
        if self._admission is None or not any(m.is_ready for m in members):
            return await self._take_locally(ask, on_wait)
        now = time.monotonic()
        broken = [m.info.id for m in members if not m.is_usable(now)]
        asked = replace(ask, avoid=tuple(dict.fromkeys((*ask.avoid, *broken))))
        try:
            region = asked.region or await self._region_for(asked, self._admission, members)
            asked = replace(asked, model=line_name(asked.model, region))
            grant = await place.enter_async_context(self._admission.acquire(asked, on_wait))
        except RedisError as error:
            log.warning("the shared admission is away, our own line decides: %s", error)
            return await self._take_locally(ask, on_wait)
        member = self._members.get(grant.replica)
        if member is None or ask.region not in ("", member.info.region):
            raise EngineUnavailable(f"{grant.replica} went away")
        member.mine += 1
        return member

    async def _region_for(self, ask: Ask, admission: Admission, members: Sequence[Member]) -> str:
        """Where to ask for what may go anywhere: where least waits and runs for the slots there; a warm prefix makes up
        for as much as it does among the replicas of one line."""
        ready = [m.info for m in members if m.is_ready]
        if len({info.region for info in ready}) == 1:
            return ready[0].region
        good = [info for info in ready if info.id not in ask.avoid] or ready
        warm = {info.region for info in good if info.id == ask.prefer}
        loads = {}
        for region in sorted({info.region for info in good}):
            standing = await admission.capacity(line_name(ask.model, region))
            there = standing.running + sum(waiting.tickets for waiting in standing.waiting)
            loads[region] = there / max(1, standing.slots) - admission.policy.affinity_slack * (region in warm)
        return min(loads, key=loads.__getitem__)

    async def _take_locally(self, ask: Ask, on_wait: OnWait | None) -> Member:
        where = (ask.model, ask.region)
        return await self._line.take(where, prefer=ask.prefer, avoid=ask.avoid, on_wait=on_wait)


def _connect(redis_url: str) -> AsyncRedis:
    client: AsyncRedis = AsyncRedis.from_url(redis_url, socket_timeout=5, socket_connect_timeout=3)
    return client
