"""The scripted engine in process: what `script` says, on the event loop's clock, with no model and no network.

Responsible for: an `Engine` for tests, demos and development whose answers are exact, continue exactly, and break
on demand. `fake://name?slots=8&itl=10` in PARLEY_REPLICA_URLS makes one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from inference.engines import script
from inference.engines.events import CallParts
from inference.engines.script import Fault, Plan, Script
from inference.engines.stream import MergedStream, Ticker
from inference.protocol import (
    ChatMessage,
    EngineFailed,
    EngineOverloaded,
    EngineRejected,
    EngineUnavailable,
    FailureKind,
    GenerationRequest,
    Health,
    InferenceError,
    Load,
    Usage,
)

_FAILURES = {
    "die": ("the connection was lost", FailureKind.DIED),
    "garbage": ("the replica sent something that is not JSON", FailureKind.GARBAGE),
    "ids": ("the replica sent ids of no vocabulary", FailureKind.GARBAGE),
    "error": ("the replica reported an error in mid-answer", FailureKind.ERROR),
    "abort": ("the replica aborted the answer", FailureKind.ERROR),
    "truncate": ("the answer ended without a finish reason", FailureKind.GARBAGE),
}


def refusal(status: int) -> InferenceError:
    """What an HTTP refusal with this status means."""
    if status in (429, 503):
        return EngineOverloaded(None, "replica is full")
    if status >= 500:
        return EngineUnavailable(f"HTTP {status}")
    return EngineRejected(status, "the script refuses this request")


class FakeEngine:
    """`faults` strike the next requests, one each, whatever their prompts say."""

    def __init__(
        self,
        *,
        slots: int = 64,
        default: Script | None = None,
        faults: Sequence[Fault] = (),
        hang_timeout_s: float = 15.0,
        merge_s: float = 0.02,
    ) -> None:
        self.slots = slots
        self.default = default or Script()
        self.faults = deque(faults)
        self.hang_timeout_s = hang_timeout_s
        self.requests: deque[GenerationRequest] = deque(maxlen=1000)
        self.aborted: deque[str] = deque(maxlen=1000)
        self.running: dict[str, _Answer] = {}
        self.tokens = 0
        self.healthy = True
        self._ticker = Ticker(merge_s)

    def generate(self, request: GenerationRequest) -> MergedStream:
        return MergedStream(_Answer(self, request), self._ticker)

    async def abort(self, request_id: str) -> None:
        if answer := self.running.get(request_id):
            answer.stop(EngineFailed("aborted", FailureKind.ABORTED))

    async def health(self) -> Health:
        return Health(
            ok=self.healthy,
            detail="" if self.healthy else "switched off",
            version="fake",
            tokenizer_digest="script",
        )

    async def load(self) -> Load:
        return Load(
            running=len(self.running),
            waiting=0,
            slots=self.slots,
            generated_tokens=self.tokens,
        )

    async def count_tokens(self, messages: Sequence[ChatMessage]) -> int:
        return len(script.render(messages))

    async def close(self) -> None:
        for answer in list(self.running.values()):
            answer.stop(EngineFailed("the engine was closed", FailureKind.ABORTED))


class _Answer:
    """One scripted answer: emits what is due and re-arms itself."""

    def __init__(self, engine: FakeEngine, request: GenerationRequest) -> None:
        self.engine = engine
        self.request = request
        self.loop = asyncio.get_running_loop()
        self.timer: asyncio.Handle | None = None
        self.i = 0
        self.calls = CallParts()
        self.plan: Plan
        self.stream: MergedStream

    async def open(self, stream: MergedStream) -> None:
        engine, request = self.engine, self.request
        engine.requests.append(request)
        self.stream = stream
        if not engine.healthy:
            raise EngineUnavailable("switched off")
        self.plan = self._make_plan()
        if (fault := self.plan.fault) and fault.kind in script.FIRST_FAULTS:
            raise refusal(fault.at if fault.kind == "refuse" else 500)
        if len(engine.running) >= engine.slots:
            raise EngineOverloaded(None, "replica is full")
        engine.running[request.request_id] = self
        self.i = self.plan.start
        stream.set_prompt(self.plan.prompt_ids)
        self.timer = self.loop.call_later(self.plan.script.ttft_ms / 1000, self._begin)

    def _make_plan(self) -> Plan:
        request, resume = self.request, self.request.resume
        ids = resume.token_ids if resume and resume.by_ids else ()
        text = resume.text if resume and not resume.by_ids else ""
        try:
            plan = script.plan_answer(
                request.model,
                request.messages,
                max_tokens=request.max_tokens - (len(resume.token_ids) if resume else 0),
                stop=request.stop,
                said_ids=ids,
                said_text=text,
                default=self.engine.default,
                tools=bool(request.extra.get("tools")),
            )
        except ValueError as error:
            raise EngineRejected(400, str(error)) from None
        if self.engine.faults:
            fault = self.engine.faults.popleft()
            plan = Plan(
                plan.script,
                plan.prompt_ids,
                plan.start,
                plan.end,
                plan.head,
                plan.finish_reason,
                fault,
            )
        return plan

    def _begin(self) -> None:
        if self.plan.head:
            self.stream.push(self.plan.head, None, 1)
        self._step()

    def _step(self) -> None:
        plan, sc = self.plan, self.plan.script
        self.timer = None
        many = 1 if sc.itl_ms else sc.burst
        for _ in range(many):
            if plan.fault and self.i - plan.start >= plan.fault.at:
                return self._break(plan.fault)
            if self.i >= plan.end:
                said = self.i - plan.start + bool(plan.head)
                return self._end(plan.finish_reason, Usage(len(plan.prompt_ids) + plan.start, said))
            self.stream.push(plan.piece(self.i), [script.OUTPUT_BASE + self.i], 1)
            if sc.calls:
                self.calls.add([sc.call_pieces[self.i]])
            self.i += 1
            self.engine.tokens += 1
        if self.stream.paused:
            return None
        self.timer = (
            self.loop.call_later(sc.itl_ms / 1000, self._step) if sc.itl_ms else self.loop.call_soon(self._step)
        )
        return None

    def _break(self, fault: Fault) -> None:
        if fault.kind in ("hang", "empty"):
            late = EngineFailed(f"no token for {self.engine.hang_timeout_s:g} s", FailureKind.HUNG)
            self.timer = self.loop.call_later(self.engine.hang_timeout_s, self.stop, late)
        else:
            self.stop(EngineFailed(*_FAILURES[fault.kind]))

    def _end(self, reason: str, usage: Usage) -> None:
        self._release()
        self.stream.finish(reason, usage, self.calls.whole())

    def stop(self, error: EngineFailed) -> None:
        self._release()
        self.stream.fail(error)

    def _release(self) -> None:
        if self.timer:
            self.timer.cancel()
        self.engine.running.pop(self.request.request_id, None)

    def drain(self, stream: MergedStream) -> None:
        """Nothing is kept back: `_step` pushes."""

    def pause(self) -> None:
        """`_step` looks at the stream itself."""

    def resume(self) -> None:
        if self.timer is None and self.request.request_id in self.engine.running:
            self.timer = self.loop.call_soon(self._step)

    async def close(self, *, ended: bool) -> None:
        if not ended:
            self._release()
            self.engine.aborted.append(self.request.request_id)
