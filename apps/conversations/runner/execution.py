"""One attempt at one run: context, replica, stream, recovery, end.

Leaves to others: the ticks (`flusher`), the choice of a replica (`inference.client`), the rows (`services.runs`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import redis
import structlog
from django.conf import settings

from apps.conversations.eventlog import AsyncLog
from apps.conversations.metrics import record_end, record_failover
from apps.conversations.runner.asking import NOTHING, Asking, Escalated
from apps.conversations.runner.context import Context, History, passages_event, search_notices
from apps.conversations.runner.decision import decision_view, escalated, escalations, was_good
from apps.conversations.runner.flusher import Flusher
from apps.conversations.runner.patience import backoff, explain, until_db
from apps.conversations.runner.placing import AnswerLengths, ask_of
from apps.conversations.runner.preparing import Prepared, prepare
from apps.conversations.runner.request import build_request
from apps.conversations.runner.takeover import restore
from apps.conversations.runner.telling import escalation, failover, running_event, waiting_event
from apps.conversations.runner.writer import FencedOut, RunWriter
from apps.conversations.services import finishing, runs
from apps.conversations.services.admission import measure_run
from apps.conversations.types import ClaimedRun, RunResult, RunState, Turn
from apps.core.db import in_db
from apps.files.public import SearchResult, cite
from inference.client import AUTO, Lease, ReplicaPool, WaitState
from inference.continuation import NotContinuable, Verdict, Written, choices_of, is_structured, judge
from inference.protocol import EngineFailed, EngineOverloaded, EngineUnavailable, ModelInfo, NoReplica, ReplicaInfo

log = structlog.get_logger(__name__)
MAX_TRIES = 8
"""In a row, without a token between them: five to eleven seconds."""
MODEL_POLL_S = 1.0
FINAL_FLUSHES = 5


class Execution:
    """Executes a claimed run to its end. `cancel` may be called at any time."""

    def __init__(
        self,
        run: ClaimedRun,
        *,
        runner: str,
        pool: ReplicaPool,
        event_log: AsyncLog,
        flusher: Flusher,
        lengths: AnswerLengths,
    ) -> None:
        self.lengths = lengths
        self.claimed, self.runner, self.pool, self.log, self.flusher = run, runner, pool, event_log, flusher
        self.writer = RunWriter(run.id, run.attempt)
        self.started = time.monotonic()
        self.task: asyncio.Task[None] | None = None
        self.cancelled = run.cancel_requested
        self.replica = run.checkpoint.origin.replica
        self.model: ModelInfo | None = None
        self.placed: ReplicaInfo | None = None
        self.reconstructed: list[Mapping[str, Any]] = []
        self.notices: list[Mapping[str, Any]] = []
        self.turns: tuple[Turn, ...] = ()
        self.found: SearchResult | None = None
        self.history: History | None = None
        self.prepared: Prepared | None = None
        self.saved: asyncio.Task[bool] | None = None
        self.waited_ms: int | None = None
        self.decision: dict[str, Any] | None = None
        self.avoid: list[str] = []
        self.asking = Asking(self.writer, flusher, run.params.extra, self._above)
        self.passes = 0
        # Tools that were started for this run.
        self.dispatched = run.checkpoint.dispatched

    def cancel(self) -> None:
        """The user wants no more of it: stop the replica, keep the text."""
        self.cancelled = True
        if self.task is not None:
            self.task.cancel()

    async def run(self) -> None:
        """Never raises but for a cancelled task that is not a user's cancel (the process is going down)."""
        with structlog.contextvars.bound_contextvars(run_id=str(self.claimed.id), attempt=self.claimed.attempt):
            try:
                if await self._take_over():
                    self.flusher.add(self.writer)
                    result = await self._answer()
                    if self.waited_ms is None:
                        # The web got a place in line for it that was never used.
                        self.pool.abandon(self.claimed.id.hex)
                    await self._end(result)
            except FencedOut:
                log.info("run.fenced_out")
            finally:
                self.flusher.remove(self.writer)

    async def _take_over(self) -> bool:
        """Restore what an earlier attempt committed; false when a newer one is already there."""
        run, saved = self.claimed, self.claimed.checkpoint
        if run.attempt == 1:
            return True
        try:
            entries = await self.log.fence(run.id, run.attempt, saved.seq)
        except redis.RedisError:
            # The first append sets the fence. Until then what the log had beyond the checkpoint is out of reach.
            entries = ()
        if entries is None:
            return False
        restore(self.writer, saved, entries)
        self.writer.snapshot()
        for reason in escalations(run.decision):
            self._tell_escalation(reason)
        if self.writer.text_length:
            self._reconstructed()
        return True

    def _reconstructed(self, *, other_weights: bool = False) -> None:
        event = failover(self.writer.text_length, self.claimed.attempt, self.replica, other_weights=other_weights)
        self.reconstructed.append(event)
        record_failover(self.claimed.model, tokens=self.writer.tokens)
        self.notices.append({"kind": "reconstructed", **event})
        self.writer.emit({"type": "reconstructed", **event}, sticky=True)

    async def _answer(self) -> RunResult:
        self.task = asyncio.current_task()
        try:
            if self.cancelled:
                return self._result(RunState.CANCELLED, "cancelled")
            async with asyncio.timeout(settings.RUN_DEADLINE_S):
                return await self._generate()
        except asyncio.CancelledError:
            if not self.cancelled:
                raise
            asyncio.current_task().uncancel()  # type: ignore[union-attr]
            return self._result(RunState.CANCELLED, "cancelled")
        except FencedOut:
            raise
        except Exception as error:  # noqa: BLE001 - the edge of a run: it ends, the others go on
            return self._failed(error)
        finally:
            self.task = None

    async def _generate(self) -> RunResult:
        tries = 0
        while True:
            self._check_what_is_written()
            written = self.writer.tokens
            self.model = await self._wait_for_model()
            try:
                self.prepared = self.prepared or await self._prepare(self.model)
                return await self._stream(self.prepared)
            except Escalated as error:
                await self._escalate(error.decision)
            except (EngineFailed, EngineUnavailable, EngineOverloaded, NoReplica) as error:
                log.warning("replica.failed", replica=self.replica, error=type(error).__name__, detail=str(error)[:200])
                if not isinstance(error, NoReplica):
                    self.avoid.append(self.replica)
                tries = 1 if self.writer.tokens > written else tries + 1
                if tries == MAX_TRIES:
                    raise
                await asyncio.sleep(backoff(tries - 1))

    async def _escalate(self, decision: dict[str, Any]) -> None:
        """Go on with a stronger model. FencedOut when the run is another runner's."""
        run, reason = self.claimed, decision["reasons"][-1]
        reason["facts"] |= asdict(self.asking.taken)
        self.asking.taken = NOTHING
        if self.saved is not None:
            # It writes the model too.
            await asyncio.gather(self.saved, return_exceptions=True)
        if not await until_db(lambda: in_db(runs.save_decision, run.id, run.attempt, decision)):
            raise FencedOut
        self.pool.answers.note(run.model, good=False)
        log.info("run.escalated", model=decision["model"], instead_of=run.model)
        self.claimed = replace(run, model=decision["model"], decision=decision)
        self.replica, self.avoid = "", []
        self._tell_escalation(reason)

    def _tell_escalation(self, reason: Mapping[str, Any]) -> None:
        event = escalation(reason)
        self.notices.append({"kind": "escalated", **event})
        self.writer.emit({"type": "escalated", **event}, sticky=True)

    async def count_dispatch(self) -> None:
        """To be called before a tool is started: no other pass, here or of another runner, may start it again.
        FencedOut when the run is another runner's."""
        run = self.claimed
        self.dispatched += 1
        if not await in_db(runs.count_dispatch, run.id, run.attempt):
            raise FencedOut

    def _check_what_is_written(self) -> None:
        """Before each pass: may it go on from what an earlier one wrote? NotContinuable."""
        writer, extra = self.writer, self.claimed.params.extra
        shown = writer.text_length > 0
        verdict, reason = judge(Written(shown, choices_of(extra), is_structured(extra), self.dispatched))
        if verdict is Verdict.FAIL:
            raise NotContinuable(reason)
        if verdict is Verdict.RESTART:
            writer.restore("", (), (), 0)

    async def _wait_for_model(self) -> ModelInfo:
        """The run's model once a replica of it is ready. Readers are told how long that may take."""
        while True:
            info = self.pool.resolve(self.claimed.model, self.claimed.region)
            if info.replicas_ready:
                return info
            if info.eta_s is None and time.monotonic() - self.started > settings.RUN_NO_REPLICA_S:
                raise NoReplica(info.id)
            self._emit_waiting(WaitState(1, info.eta_s))
            await asyncio.sleep(MODEL_POLL_S)

    def _emit_waiting(self, wait: WaitState) -> None:
        self.writer.emit(waiting_event(self.claimed.attempt, wait))
        self.flusher.hurry(self.writer)

    async def _prepare(self, model: ModelInfo) -> Prepared:
        begun, note = bool(self.writer.text_length), self.asking.note
        prepared = await prepare(self.claimed, model, self.pool, begun=begun, note=note)
        self.turns = prepared.turns
        if prepared.consultation is None:
            self._give(prepared.context)
        return prepared

    def _give(self, context: Context) -> None:
        """Tell readers what the model is given, and keep what it is sent."""
        run, self.found, self.history = self.claimed, context.given, context.history
        if self.found is not None:
            event = passages_event(self.found)
            self.notices.extend(search_notices(event))
            self.writer.emit(event, sticky=True)
        if not run.prompt:
            model = self.model.id if self.model else run.model
            save = partial(runs.save_context, run.id, run.attempt, context=context.view(), model=model)
            self.saved = asyncio.create_task(until_db(lambda: in_db(save)))

    async def _consult(self, lease: Lease, prepared: Prepared) -> None:
        """Have the model look into tables, where it is to, and put what it found into the context. FencedOut."""
        consultation, prepared.consultation = prepared.consultation, None
        if consultation is None:
            return
        self._emit_running(lease, looking_in=list(consultation.files.values()))
        self.passes += 1
        request = build_request(self.claimed, prepared.context, lease.model, self.writer, number=self.passes, extra={})
        consulted = await consultation.hold(lease.engine, request, self.turns)
        prepared.context = await prepared.fit(consulted)
        self._give(prepared.context)
        self._emit_running(lease)
        if self.saved is not None and not await self.saved:
            raise FencedOut

    async def _stream(self, prepared: Prepared) -> RunResult:
        preferred = self.replica or self._warm_replica()
        expected = self.lengths.expected(self.model.id if self.model else "")
        ask = ask_of(
            self.claimed,
            prepared.context,
            output_tokens=expected,
            looked_up=prepared.growth,
            prefer=preferred,
            failed=(*self.avoid, *self._of_other_weights()),
        )
        async with self.pool.reserve(ask, on_wait=self._emit_waiting) as lease:
            self._go_on(lease.replica)
            self._placed(lease, preferred)
            self._emit_running(lease)
            await self._consult(lease, prepared)
            context = prepared.context
            self.passes += 1
            request = build_request(
                self.claimed, context, lease.model, self.writer, number=self.passes, extra=self.asking.told
            )
            try:
                reason = await self.asking.ask(lease.engine, request, room=context.room)
            finally:
                taken = self.asking.taken
                written = len(self.writer.prompt_token_ids) + self.writer.tokens
                lease.spent(written + taken.prompt_tokens + taken.completion_tokens)
        self.lengths.note(lease.model.id, self.writer.tokens)
        state = RunState.INCOMPLETE if reason == "length" else RunState.COMPLETED
        return self._result(state, reason)

    def _of_other_weights(self) -> list[str]:
        """Where an answer that has begun should not go on: what follows might be of another mind."""
        if not self.writer.text_length:
            return []
        left = self.pool.usable(self.claimed.model, self.claimed.region)
        return self.writer.origin.others([replica for replica in left if replica.id not in self.avoid])

    def _go_on(self, replica: ReplicaInfo) -> None:
        """From here the replica writes; readers are told of it where something is written already."""
        failed_over = bool(self.replica and self.avoid)
        self.replica = replica.id
        if self.writer.text_length:
            other = self.writer.origin.thinks_otherwise(replica)
            if other:
                log.warning("run.other_weights", replica=replica.id, instead_of=self.writer.origin.replica)
            if other or failed_over:
                self._reconstructed(other_weights=other)
        self.writer.begin(replica)

    def _above(self, why: str) -> dict[str, Any] | None:
        """The decision for the next stronger model that has room for the prompt; None where there is none, and where
        the user chose."""
        run, length = self.claimed, self.model.context_length if self.model else 0
        if run.requested != AUTO or not run.decision or not run.decision.get("alternatives"):
            return None
        roomy = [c for c in self.pool.candidates() if not c.context_length or c.context_length >= length]
        return escalated(run.decision, roomy, why=why)

    def _warm_replica(self) -> str:
        """The replica of the conversation's last answer, which has its beginning in its prefix cache."""
        return next((turn.replica for turn in reversed(self.turns) if turn.replica), "")

    def _placed(self, lease: Lease, preferred: str) -> None:
        """Keep why this model and this replica; after a failover the first wait stands, and the newest replica."""
        self.placed = lease.replica
        if self.waited_ms is None:
            self.waited_ms = round((time.monotonic() - self.started) * 1000)
        self.decision = decision_view(
            self.claimed.decision, lease, self.pool.replicas(), preferred=preferred, failed=self.avoid
        )

    def _emit_running(self, lease: Lease, *, looking_in: Sequence[str] = ()) -> None:
        self.writer.emit(running_event(self.claimed.attempt, lease, looking_in))

    def _result(self, state: RunState, reason: str | None, error: Mapping[str, Any] | None = None) -> RunResult:
        writer, first = self.writer, self.writer.first_token_at
        used = self.asking.used(escalations(self.claimed.decision))
        return RunResult(
            state=state,
            text=writer.text,
            finish_reason=reason,
            prompt_tokens=used.prompt_tokens,
            cached_tokens=used.cached_tokens,
            completion_tokens=used.completion_tokens,
            model=self.model.id if self.model else "",
            replica=self.replica,
            waited_ms=self.waited_ms,
            ttft_ms=None if first is None else round((first - self.started) * 1000),
            decision=self.decision,
            citations=cite(writer.text, self.found.hits) if self.found and self.found.hits else (),
            tool_calls=tuple(call.view() for call in self.asking.tool_calls),
            error=error,
            reconstructed=tuple(self.reconstructed),
            notices=tuple(self.notices),
        )

    def _failed(self, error: Exception) -> RunResult:
        """A run that broke off keeps its text and is incomplete; one that wrote nothing failed."""
        code, message, retry_after_s = explain(error)
        state = RunState.INCOMPLETE if self.writer.text_length else RunState.FAILED
        log.warning(
            "run.failed", code=code, written=self.writer.text_length, exc_info=error if code == "internal" else None
        )
        return self._result(state, None, {"code": code, "message": message, "retry_after_s": retry_after_s})

    async def _end(self, result: RunResult) -> None:
        """Final rows first, then the terminal event. Waits out a database that is away: the text is in memory."""
        if result.citations:
            self.writer.emit({"type": "citations", "citations": list(result.citations)})
        if self.saved is not None:
            await asyncio.gather(self.saved, return_exceptions=True)
        event = await self._finish(result)
        if event is None:
            # A checkpoint that comes after the end finds no running run and fences us too; what counts is this.
            raise FencedOut
        record_end(self.claimed, result, time.monotonic() - self.started, placed=self.placed)
        if (good := was_good(self.claimed, result)) is not None:
            self.pool.answers.note(self.claimed.model, good=good)
        self.writer.emit(event, final=True)
        for _ in range(FINAL_FLUSHES):
            await self.flusher.flushed(self.writer)
            if not self.writer.has_queued:
                break
        if result.state is RunState.COMPLETED:
            asyncio.get_running_loop().run_in_executor(None, measure_run, time.monotonic() - self.started)

    async def _finish(self, result: RunResult) -> dict[str, Any] | None:
        run = self.claimed

        async def finish() -> dict[str, Any] | None:
            numbered = replace(result, seq=self.writer.next_seq())
            return await in_db(finishing.finish_run, run.id, run.attempt, numbered, by=self.runner)

        return await until_db(finish)
