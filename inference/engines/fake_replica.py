"""What a scripted server is besides its connections: slots and queue, a toy prefix cache, faults, counters.

Responsible for: deciding what a request gets, as vLLM would. Leaves routes and bytes to `fake_server`.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from inference.engines import script
from inference.engines.fake_manners import MANNERS
from inference.engines.fake_pooling import FakePooling
from inference.engines.fake_stream import Stream, Voice, Wheel
from inference.engines.script import Fault, Plan, Script, message_of
from inference.protocol import ChatMessage

_BLOCK = 16
_CACHED_BLOCKS = 65_536
_ADDITIONS = ("return_token_ids", "cache_salt", "priority", "continue_final_message", "add_generation_prompt")
_STOPPING = "cannot schedule new futures after shutdown"


@dataclass(frozen=True, slots=True)
class Options:
    """`shift` is added to every token id, as if the tokenizer were another one."""

    slots: int = 1024
    queue: int = 1024
    context: int = 131_072
    models: tuple[str, ...] = ("fake", "fake-slow")
    default: Script = field(default_factory=Script)
    api_key: str = ""
    manner: str = "vllm"
    shift: int = 0


class Refusal(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class FakeReplica:
    """One scripted replica. All its connections share it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, options: Options) -> None:
        self.loop, self.options = loop, options
        self.manner = MANNERS[options.manner]
        self.wheel = Wheel(loop)
        self.tokens = self.requests = self.finished = self.aborted = self.abort_posts = self.peak = 0
        self.queries = self.hits = 0
        self.connections = 0
        self.running: set[Stream] = set()
        self.queue: deque[Stream] = deque()
        self.faults: deque[Fault] = deque()
        self.pooling = FakePooling()
        self.healthy, self.stopping = True, False
        self.now, self.aborted_at = "", 0.0
        self._voices: dict[tuple[str, bool, bool], Voice] = {}
        self._blocks: OrderedDict[tuple[str, int], None] = OrderedDict()

    # ------------------------------------------------ answers

    def plan(self, body: dict[str, Any], *, chat: bool) -> tuple[Plan, dict[str, Any]]:
        """The answer to a request body, and its usage. Refusal when a real server would refuse."""
        if self.stopping:
            raise Refusal(500, _STOPPING)
        if not self.manner.additions and (alien := [k for k in _ADDITIONS if k in body]):
            raise Refusal(400, f"unknown fields: {', '.join(alien)}")
        if len(self.running) + len(self.queue) >= self.options.slots + self.options.queue:
            raise Refusal(self.manner.full, "Maximum number of queued requests reached")
        try:
            plan, prompt = self._plan_chat(body) if chat else self._plan_completion(body)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise Refusal(400, str(error)) from None
        if len(prompt) + plan.end - plan.start > self.options.context:
            raise Refusal(400, f"This model's maximum context length is {self.options.context} tokens")
        if plan.fault and plan.fault.kind in script.FIRST_FAULTS:
            status = plan.fault.at if plan.fault.kind == "refuse" else 500
            raise Refusal(status, _STOPPING if status == 500 else "the script refuses this request")
        return plan, self._usage(str(body.get("cache_salt") or ""), prompt, plan)

    def _plan_chat(self, body: dict[str, Any]) -> tuple[Plan, Sequence[int]]:
        messages = [message_of(m) for m in body["messages"]]
        _check_results(messages)
        said = messages.pop().content if body.get("continue_final_message") else ""
        plan = self._make(body, messages, said_text=said)
        return plan, [*plan.prompt_ids, *script.encode(said)]

    def _plan_completion(self, body: dict[str, Any]) -> tuple[Plan, Sequence[int]]:
        prompt = body["prompt"]
        if isinstance(prompt, str):
            prompt = script.render([ChatMessage("user", prompt)])
        else:
            prompt = [id - self.options.shift for id in prompt]
        messages, said = script.unrender(prompt)
        return self._make(body, messages, said_ids=said), prompt

    def _make(
        self,
        body: dict[str, Any],
        messages: Sequence[ChatMessage],
        said_ids: Sequence[int] = (),
        said_text: str = "",
    ) -> Plan:
        stop = body.get("stop") or ()
        limit = body.get("max_completion_tokens") or body.get("max_tokens")
        plan = script.plan_answer(
            str(body.get("model", "")),
            messages,
            max_tokens=self.options.context if limit is None else int(limit),
            stop=(stop,) if isinstance(stop, str) else tuple(stop),
            said_ids=said_ids,
            said_text=said_text,
            default=self.options.default,
            tools=bool(body.get("tools")),
        )
        return replace(plan, fault=self.faults.popleft()) if self.faults else plan

    def _usage(self, salt: str, prompt: Sequence[int], plan: Plan) -> dict[str, Any]:
        said = plan.end - plan.start + bool(plan.head)
        usage = {"prompt_tokens": len(prompt), "completion_tokens": said, "total_tokens": len(prompt) + said}
        if not self.manner.additions:
            return usage
        return {**usage, "prompt_tokens_details": {"cached_tokens": self._touch_prefix(salt, prompt)}}

    def _touch_prefix(self, salt: str, prompt: Sequence[int]) -> int:
        """Tokens of the prompt that an earlier one with the same salt began with, in whole blocks."""
        cached, unbroken, key = 0, True, hash(salt)
        for i in range(0, len(prompt) - _BLOCK, _BLOCK):
            key = hash((key, *prompt[i : i + _BLOCK]))
            known = (salt, key) in self._blocks
            unbroken = unbroken and known
            cached += _BLOCK * unbroken
            self._blocks[salt, key] = None
            self._blocks.move_to_end((salt, key))
        while len(self._blocks) > _CACHED_BLOCKS:
            self._blocks.popitem(last=False)
        self.queries += len(prompt)
        self.hits += cached
        return cached

    def voice(self, model: str, *, chat: bool, ids: bool) -> Voice:
        key = (model, chat, ids)
        if key not in self._voices:
            if len(self._voices) > 1000:
                self._voices.clear()
            self._voices[key] = Voice(model, chat=chat, ids=ids, shift=self.options.shift)
        return self._voices[key]

    def enter(self, stream: Stream) -> None:
        if len(self.running) < self.options.slots:
            self.running.add(stream)
            self.peak = max(self.peak, len(self.running))
            stream.start()
        else:
            self.queue.append(stream)

    def stream_ended(self, stream: Stream, *, finished: bool) -> None:
        self.finished += finished
        if not finished:
            self.aborted += 1
            self.aborted_at = self.loop.time()
        self.running.discard(stream)
        with suppress(ValueError):
            self.queue.remove(stream)
        if self.queue and len(self.running) < self.options.slots:
            self.enter(self.queue.popleft())

    def abort_requests(self, ids: Sequence[str]) -> None:
        self.abort_posts += 1
        wanted = {i.removeprefix("chatcmpl-").removeprefix("cmpl-").removesuffix("-0") for i in ids}
        for stream in [s for s in (*self.running, *self.queue) if s.request_id in wanted]:
            stream.abort()

    # ------------------------------------------------ other routes

    def control(self, order: dict[str, Any]) -> dict[str, Any]:
        if kind := order.get("fault"):
            if kind not in script.STREAM_FAULTS | script.FIRST_FAULTS:
                raise Refusal(400, f"no such fault: {kind}")
            self.faults.extend([Fault(str(kind), int(order.get("at", 0)))] * int(order.get("times", 1)))
        if (now := str(order.get("now", self.now))) and now not in script.STREAM_FAULTS:
            raise Refusal(400, f"no such fault: {now}")
        self.now = now
        self.healthy = bool(order.get("healthy", self.healthy))
        self.stopping = bool(order.get("stopping", self.stopping))
        return {"faults": len(self.faults), "healthy": self.healthy, "stopping": self.stopping}

    def stats(self) -> dict[str, Any]:
        return {
            "requests": self.requests,
            "active": len(self.running),
            "waiting": len(self.queue),
            "peak": self.peak,
            "tokens": self.tokens,
            "finished": self.finished,
            "aborted": self.aborted,
            "aborted_at": self.aborted_at,
            "abort_posts": self.abort_posts,
            "connections": self.connections,
            "cpu_s": time.process_time(),
        }

    def metrics(self) -> bytes:
        label = '{engine="0",model_name="fake"}'
        lines = {
            "num_requests_running": len(self.running),
            "num_requests_waiting": len(self.queue),
            "kv_cache_usage_perc": min(1.0, len(self.running) / self.options.slots),
            "prefix_cache_queries_total": self.queries,
            "prefix_cache_hits_total": self.hits,
            "generation_tokens_total": self.tokens,
        }
        # Room for a context of 2,048 tokens in every slot, as whoever sets so many slots would give it.
        blocks = max(4096, 64 * self.options.slots)
        page = "".join(f"vllm:{name}{label} {float(value)}\n" for name, value in lines.items())
        facts = f'block_size="32",engine="0",num_gpu_blocks="{blocks}"'
        return (page + f"vllm:cache_config_info{{{facts}}} 1.0\n").encode()


def _check_results(messages: Sequence[ChatMessage]) -> None:
    """ValueError, as templates raise it, when the result of a tool names no call before it."""
    called: set[str] = set()
    for message in messages:
        called |= {call.id for call in message.tool_calls}
        if message.role == "tool" and message.tool_call_id not in called:
            raise ValueError(f"the result of a call that nobody made: {message.tool_call_id!r}")
