"""The runner process: a lease, a claim loop, a sweep, and an execution for each run it holds."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any
from uuid import UUID

import redis
import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError

from apps.conversations.eventlog import AsyncLog, lane_key
from apps.conversations.runner.execution import Execution
from apps.conversations.runner.exporter import exporting
from apps.conversations.runner.flusher import Flusher
from apps.conversations.runner.placing import AnswerLengths
from apps.conversations.runner.remembering import remember
from apps.conversations.runner.titles import make_title
from apps.conversations.services import runs
from apps.conversations.services.handoff import CANCEL_CHANNEL
from apps.conversations.services.line import admission_policy
from apps.conversations.types import ClaimedRun, Lane
from apps.core.db import in_db
from apps.core.ids import new_id
from apps.core.loops import stop_tasks
from apps.core.valkey import new_async_valkey
from inference.client import Admission, ReplicaPool
from inference.pipe import Pipe

log = structlog.get_logger(__name__)
CLAIM_BATCH = 32
SWEEP_S = 0.4
FORGET_S = 600.0
OFFERS_S = 1.0
AWAY = (redis.RedisError, OSError, OperationalError, InterfaceError)
"""A service that is away: every loop survives it and tries again."""


class RunnerProcess:
    """Executes runs until it is told to stop, then drains and hands the rest over."""

    kind_of_execution = Execution

    def __init__(self) -> None:
        self.valkey = Pipe(settings.REDIS_URL)
        self.log = AsyncLog(self.valkey)
        # Blocking calls and the subscription hold up whatever is behind them, so they have their own connections.
        self.offers = Pipe(settings.REDIS_URL, patience_s=OFFERS_S * 5)
        self.cancels = new_async_valkey(max_connections=1)
        # One name a start: what an earlier process of this machine held is given back when its heartbeat has ended.
        self.admission = Admission(settings.REDIS_URL, owner=new_id().hex, policy=admission_policy())
        self.pool = ReplicaPool(settings.REDIS_URL, replica_urls=settings.REPLICA_URLS, admission=self.admission)
        self.flusher = Flusher(self.log)
        self.lengths = AnswerLengths()
        self.executions: dict[UUID, Execution] = {}
        self.claiming: set[UUID] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.stopping = asyncio.Event()
        self.id: UUID | None = None
        self._renewed_at = time.monotonic()
        self._patient_until = 0.0

    async def run(self) -> None:
        """Until SIGTERM or SIGINT."""
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self.stopping.set)
        with exporting(self.pool, self.admission, lambda: len(self.executions)):
            await self._run()

    async def _run(self) -> None:
        await self.pool.start()
        self.id = await self._register()
        self._renewed_at = time.monotonic()
        log.info("runner.ready", runner=str(self.id))
        loops = [
            asyncio.create_task(self.flusher.run(), name="flush"),
            asyncio.create_task(self._every(settings.RUN_CHECKPOINT_S, self.flusher.checkpoint), name="checkpoint"),
            asyncio.create_task(self._every(settings.RUN_LEASE_S / 4, self._renew), name="lease"),
            asyncio.create_task(self._every(SWEEP_S, self._sweep), name="sweep"),
            asyncio.create_task(self._every(FORGET_S, self._forget), name="forget"),
            asyncio.create_task(self._retrying(self._listen_for_cancels), name="cancels"),
        ]
        claims = asyncio.create_task(self._retrying(self._claim_offered), name="claims")
        for task in (claims, *loops):
            task.add_done_callback(self._loop_ended)
        await self.stopping.wait()
        await stop_tasks([claims])
        await self._drain()
        await stop_tasks(loops)
        await in_db(runs.release_runner, self.id)
        await self.pool.stop()
        await self.valkey.close()
        await self.offers.close()
        await self.cancels.aclose()
        log.info("runner.stopped", left=len(self.executions))

    def _loop_ended(self, task: asyncio.Task[None]) -> None:
        """A loop that crashed is a bug: say so and stop, so that another runner takes over."""
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("runner.loop_crashed", loop=task.get_name(), exc_info=error)
            self.stopping.set()

    async def _register(self) -> UUID:
        while True:
            try:
                id = await in_db(runs.register_runner)
                await in_db(runs.renew_lease, id, settings.RUN_LEASE_S)
                return id
            except AWAY as error:
                log.warning("runner.waiting_for_database", error=type(error).__name__)
                await asyncio.sleep(1)

    @property
    def room(self) -> int:
        return 0 if self.stopping.is_set() else settings.RUNS_PER_RUNNER - len(self.executions)

    async def _every(self, seconds: float, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await step()
            except AWAY as error:
                log.warning("runner.away", step=step.__name__, error=type(error).__name__)

    async def _retrying(self, loop: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await loop()
            except AWAY as error:
                log.warning("runner.away", step=loop.__name__, error=type(error).__name__)
                await asyncio.sleep(0.5)

    async def _claim_offered(self) -> None:
        """Take offered runs, interactive ones first."""
        keys = [lane_key(Lane.INTERACTIVE), lane_key(Lane.BATCH)]
        while True:
            if self.room <= 0:
                await asyncio.sleep(0.05)
                continue
            most = min(CLAIM_BATCH, self.room)
            popped: Any = await self.offers.call("BLMPOP", OFFERS_S, len(keys), *keys, "LEFT", "COUNT", most)
            if popped:
                # Shielded: what is claimed when the process is told to stop is started, and then drained.
                claim = self._background(self._claim([UUID(hex=raw.decode()) for raw in popped[1]]), "claim")
                await asyncio.shield(claim)

    async def _claim(self, ids: Sequence[UUID]) -> None:
        """Claim what this runner does not hold already; a run it was fenced out of counts as not held."""
        assert self.id is not None
        free = {id for id in ids if id not in self.claiming and not self._holds(id)}
        self.claiming |= free
        try:
            for claimed in await in_db(runs.claim_runs, self.id, list(free)):
                self._start(claimed)
        finally:
            self.claiming -= free

    def _holds(self, id: UUID) -> bool:
        execution = self.executions.get(id)
        return execution is not None and not execution.writer.fenced

    def _start(self, claimed: ClaimedRun) -> None:
        execution = self.kind_of_execution(
            claimed,
            runner=str(self.id),
            pool=self.pool,
            event_log=self.log,
            flusher=self.flusher,
            lengths=self.lengths,
        )
        self.executions[claimed.id] = execution
        self._background(self._execute(execution), f"run-{claimed.id}")

    def _background(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Work that a stop waits for."""
        task = asyncio.create_task(work, name=name)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def _execute(self, execution: Execution) -> None:
        claimed = execution.claimed
        try:
            await execution.run()
        finally:
            if self.executions.get(claimed.id) is execution:
                del self.executions[claimed.id]
        if len(execution.turns) == 1 and execution.writer.text_length and not self.stopping.is_set():
            await make_title(self.pool, claimed, execution.turns[0].text, execution.writer.text)
        elif execution.history is not None and not self.stopping.is_set():
            length = execution.model.context_length if execution.model else 0
            await remember(self.pool, execution.claimed, execution.history, length or 2_048)

    async def _renew(self) -> None:
        assert self.id is not None
        known = await in_db(runs.renew_lease, self.id, settings.RUN_LEASE_S)
        now = time.monotonic()
        if now - self._renewed_at > settings.RUN_LEASE_S:
            # Perhaps the database was away for everybody: the others may renew before their runs are taken.
            self._patient_until = now + settings.RUN_LEASE_S
        self._renewed_at = now
        if not known and not self.stopping.is_set():
            # This machine slept so long that others forgot it. Its runs are theirs; it may take new ones.
            await in_db(runs.register_runner, self.id)

    async def _forget(self) -> None:
        await in_db(runs.forget_dead_runners)

    async def _sweep(self) -> None:
        """Runs whose hint was lost, runs of dead runners, and cancellations whose note was missed."""
        assert self.id is not None
        mine = [*self.executions, *self.claiming]
        limit = min(CLAIM_BATCH, max(0, self.room))
        work = await in_db(runs.find_work, self.id, mine=mine, limit=limit, orphans=self._may_judge_others())
        for id in work.cancelled:
            self._cancel(id)
        await self._claim(work.claimable)

    def _may_judge_others(self) -> bool:
        """Whoever could not renew their own lease in time does not know that others are dead."""
        now = time.monotonic()
        return now - self._renewed_at < settings.RUN_LEASE_S and now >= self._patient_until

    def _cancel(self, id: UUID) -> None:
        execution = self.executions.get(id)
        if execution is not None:
            execution.cancel()

    async def _listen_for_cancels(self) -> None:
        async with self.cancels.pubsub() as channel:
            await channel.subscribe(CANCEL_CHANNEL)
            async for message in channel.listen():
                if message["type"] == "message":
                    self._cancel(UUID(hex=message["data"].decode()))

    async def _drain(self) -> None:
        """Let answers end; what is left is checkpointed and goes to another runner at once."""
        log.info("runner.draining", runs=len(self.executions))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(settings.RUN_DRAIN_S):
                while self.tasks:
                    await asyncio.wait(self.tasks)
        left = list(self.tasks)
        if left:
            await self.flusher.checkpoint()
        await stop_tasks(left)
