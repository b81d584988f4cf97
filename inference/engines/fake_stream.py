"""How the scripted server speaks: frames in vLLM's shape, one timer for all streams, and one streamed answer.

Responsible for: chunk bytes (built once a token position and reused), pacing on a shared 1 ms wheel, back-pressure
and the faults of a script. Leaves connections, routes and slots to `fake_server`.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from typing import Any, Protocol

import orjson

from inference.engines.script import OUTPUT_BASE, Plan

HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
LAST = b"0\r\n\r\n"
_BABBLE_S = 0.05
_NO_ID = 1 << 30


def frame(data: bytes) -> bytes:
    """One piece of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(value: dict[str, Any]) -> bytes:
    return frame(b"data: " + orjson.dumps(value) + b"\n\n")


class Wheel:
    """Runs callbacks at a time, to the millisecond, with one loop timer however many wait."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._slots: dict[int, list[Callable[[], None]]] = {}
        self._ticks: list[int] = []
        self._armed: tuple[int, asyncio.TimerHandle] | None = None

    def at(self, when: float, call: Callable[[], None]) -> None:
        tick = int(when * 1000) + 1
        if tick in self._slots:
            self._slots[tick].append(call)
            return
        self._slots[tick] = [call]
        heapq.heappush(self._ticks, tick)
        if self._armed is None or tick < self._armed[0]:
            self._arm(tick)

    def _arm(self, tick: int) -> None:
        if self._armed is not None:
            self._armed[1].cancel()
        self._armed = (tick, self._loop.call_at(tick / 1000, self._turn))

    def _turn(self) -> None:
        self._armed = None
        now = int(self._loop.time() * 1000)
        while self._ticks and self._ticks[0] <= now:
            for call in self._slots.pop(heapq.heappop(self._ticks)):
                call()
        if self._ticks and self._armed is None:
            self._arm(self._ticks[0])


class Voice:
    """Chunks of one kind of answer: chat or completion, with or without ids, under one model name."""

    def __init__(self, model: str, *, chat: bool, ids: bool, shift: int = 0) -> None:
        self.model, self.chat, self.ids, self.shift = model, chat, ids, shift
        self._frames: list[bytes] = []

    def _chunk(self, text: str | None, ids: list[int] | None, finish: str | None) -> dict[str, Any]:
        said: dict[str, Any] = (
            {"delta": {} if text is None else {"content": text}} if self.chat else {"text": text or ""}
        )
        return self._choice(said, ids, finish)

    def _choice(self, said: dict[str, Any], ids: list[int] | None, finish: str | None = None) -> dict[str, Any]:
        told = {"token_ids": ids and [id + self.shift for id in ids]} if self.ids else {}
        return self._wrap([{"index": 0, **said, **told, "finish_reason": finish}])

    def _wrap(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        kind, prefix = ("chat.completion.chunk", "chatcmpl") if self.chat else ("text_completion", "cmpl")
        return {"id": f"{prefix}-fake", "object": kind, "created": 1700000000, "model": self.model, "choices": choices}

    def opening(self, prompt_ids: tuple[int, ...]) -> bytes:
        """Chat answers open with the role; both kinds tell the prompt's ids when asked."""
        told = [id + self.shift for id in prompt_ids] if self.ids else []
        if not self.chat:
            chunk = self._wrap([{"index": 0, "text": "", "finish_reason": None}])
            if not self.ids:
                return b""
            chunk["choices"][0]["prompt_token_ids"] = told
            return event(chunk)
        chunk = self._wrap([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])
        if self.ids:
            chunk["prompt_token_ids"] = told
        return event(chunk)

    def token(self, plan: Plan, i: int) -> bytes:
        if plan.script.calls:
            said = {"delta": {"tool_calls": [plan.script.call_pieces[i]]}}
            return event(self._choice(said, [OUTPUT_BASE + i]))
        if i and not plan.script.words:
            while len(self._frames) <= i:
                k = len(self._frames)
                self._frames.append(event(self._chunk(plan.piece(k), [OUTPUT_BASE + k], None)))
            return self._frames[i]
        return event(self._chunk(plan.piece(i), [OUTPUT_BASE + i], None))

    def text(self, text: str) -> bytes:
        return event(self._chunk(text, None, None))

    def nonsense(self) -> bytes:
        return event(self._chunk("", [_NO_ID], None))

    def closing(self, finish: str, usage: dict[str, Any] | None) -> bytes:
        tail = event(self._chunk(None, None, finish))
        if usage is not None:
            tail += event({**self._wrap([]), "usage": usage})
        return tail + frame(b"data: [DONE]\n\n") + LAST


class Owner(Protocol):
    """What a stream needs of the server: the clock, and to be told of tokens and of the end. `now`: the fault that
    strikes all its streams at their next step, or nothing."""

    loop: asyncio.AbstractEventLoop
    wheel: Wheel
    tokens: int
    now: str

    def stream_ended(self, stream: Stream, *, finished: bool) -> None: ...


class Outlet(Protocol):
    """What a stream needs of its connection."""

    writable: bool

    def write(self, data: bytes) -> None: ...

    def drop(self) -> None: ...


class Stream:
    """One streamed answer. It sends what is due and re-arms itself; `dead` once nothing more may be sent."""

    __slots__ = ("began", "dead", "i", "outlet", "owner", "plan", "request_id", "usage", "voice", "waiting")

    def __init__(
        self, owner: Owner, outlet: Outlet, plan: Plan, voice: Voice, usage: dict[str, Any] | None, request_id: str
    ) -> None:
        self.owner, self.outlet, self.plan, self.voice = owner, outlet, plan, voice
        self.usage, self.request_id = usage, request_id
        self.i = plan.start
        self.began = 0.0
        self.dead = self.waiting = False

    def start(self) -> None:
        if self.dead:
            return
        self.outlet.write(self.voice.opening(self.plan.prompt_ids))
        self.began = self.owner.loop.time() + self.plan.script.ttft_ms / 1000
        if self.plan.script.ttft_ms:
            self.owner.wheel.at(self.began, self._begin)
        else:
            self._begin()

    def _begin(self) -> None:
        if self.plan.head and not self.dead:
            self.outlet.write(self.voice.text(self.plan.head))
        self.step()

    def step(self) -> None:
        if self.dead:
            return
        if not self.outlet.writable:
            self.waiting = True
            return
        if self.owner.now:
            self._break(self.owner.now)
            return
        plan, sc = self.plan, self.plan.script
        out: list[bytes] = []
        for _ in range(1 if sc.itl_ms else sc.burst):
            if plan.fault and self.i - plan.start >= plan.fault.at:
                self._flush(out)
                self._break(plan.fault.kind)
                return
            if self.i >= plan.end:
                break
            out.append(self.voice.token(plan, self.i))
            self.i += 1
        self._flush(out)
        if self.i >= plan.end and not plan.fault:
            self._end(plan.finish_reason)
        elif sc.itl_ms:
            due = self.began + (self.i - plan.start) * sc.itl_ms / 1000
            self.owner.wheel.at(max(due, self.owner.loop.time() + 0.0002), self.step)
        else:
            self.owner.loop.call_soon(self.step)

    def _flush(self, out: list[bytes]) -> None:
        if out:
            self.owner.tokens += len(out)
            self.outlet.write(out[0] if len(out) == 1 else b"".join(out))

    def _end(self, finish: str) -> None:
        self.outlet.write(self.voice.closing(finish, self.usage))
        self._die(finished=True)

    def abort(self) -> None:
        """As vLLM does when it was told to: a last chunk that says so."""
        if not self.dead:
            self.outlet.write(self.voice.closing("abort", None))
            self._die(finished=False)

    def _break(self, kind: str) -> None:
        if kind == "hang":
            return
        if kind == "empty":
            self._babble()
            return
        if kind == "garbage":
            self.outlet.write(frame(b'data: {"choices": [{"delta": {"conte\n\n'))
        elif kind == "ids":
            self.outlet.write(self.voice.nonsense())
        elif kind == "error":
            failure = {"message": "EngineCore encountered an issue", "type": "InternalServerError", "code": 500}
            self.outlet.write(event({"error": failure}) + frame(b"data: [DONE]\n\n") + LAST)
        elif kind == "truncate":
            self.outlet.write(LAST)
        elif kind == "abort":
            self.outlet.write(self.voice.closing("abort", None))
        self._die(finished=False)
        if kind in ("die", "garbage", "ids"):
            self.outlet.drop()

    def _babble(self) -> None:
        """Events without end that say nothing."""
        if not self.dead:
            self.outlet.write(self.voice.text(""))
            self.owner.wheel.at(self.owner.loop.time() + _BABBLE_S, self._babble)

    def lost(self) -> None:
        """The client went away."""
        if not self.dead:
            self._die(finished=False)

    def _die(self, *, finished: bool) -> None:
        self.dead = True
        self.owner.stream_ended(self, finished=finished)
