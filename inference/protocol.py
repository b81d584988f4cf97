"""The one contract between a caller that wants an answer and whatever produces it.

Responsible for: request and result types, the error tree, the `Engine` interface, and the facts that are known
about replicas and models. Leaves to others: how a replica is spoken to (`engines/`), which one is chosen
(`client`), and who starts them (`supervisor`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Protocol

NO_EXTRA: Mapping[str, Any] = MappingProxyType({})


# ---------------------------------------------------------------- errors


class InferenceError(Exception):
    """Whatever can go wrong on the way to an answer. `str(error)` is for logs, not for readers."""


class EngineOverloaded(InferenceError):
    """The replica refused for lack of room before it produced anything: safe to send elsewhere or later."""

    def __init__(self, retry_after_s: float | None = None, reason: str = "replica is full") -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s
        self.reason = reason


class FailureKind(StrEnum):
    """How a replica failed, for breakers and counters."""

    DIED = "died"  # no connection, or a lost one
    HUNG = "hung"  # no token for too long
    GARBAGE = "garbage"  # bytes that no server of this kind sends
    ERROR = "error"  # it said itself that it failed
    ABORTED = "aborted"  # by us


class EngineUnavailable(InferenceError):
    """The replica could not be reached, or is going away, and nothing was produced: safe to send elsewhere."""

    def __init__(self, message: str, kind: FailureKind = FailureKind.DIED) -> None:
        super().__init__(message)
        self.kind = kind


class EngineRejected(InferenceError):
    """The replica understood the request and says it is wrong: another replica would say the same."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class EngineFailed(InferenceError):
    """The answer broke off (death, silence, garbage, an abort that we did not ask for); what came before holds."""

    def __init__(self, message: str, kind: FailureKind = FailureKind.DIED) -> None:
        super().__init__(message)
        self.kind = kind


class NoReplica(InferenceError):
    """No replica of the model can serve. `eta_s` is set when one is loading; `known` is false for a foreign name."""

    def __init__(self, model: str, *, eta_s: float | None = None, known: bool = True) -> None:
        super().__init__(f"no ready replica of {model!r}" if known else f"no model named {model!r}")
        self.model = model
        self.eta_s = eta_s
        self.known = known


class Overloaded(InferenceError):
    """No place, and none to wait for. Nothing was reserved. `reason` is for people; `code` is one of queue_full,
    wait_too_long, user_limit, user_tokens, organization_limit, organization_tokens, too_large, pressure.
    `alternative`: a smaller model that may be offered, openly. For a prompt that is too large `retry_after_s` is 0:
    asking again is of no use."""

    def __init__(self, retry_after_s: float, reason: str, *, code: str = "queue_full", alternative: str = "") -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s
        self.reason = reason
        self.code = code
        self.alternative = alternative


# ---------------------------------------------------------------- one generation


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A tool call as a model wrote it: `arguments` is text that should be JSON."""

    id: str
    name: str
    arguments: str

    def view(self) -> dict[str, Any]:
        """In OpenAI's form."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}

    @classmethod
    def read(cls, view: Mapping[str, Any]) -> WrittenCall:
        return cls(view["id"], view["function"]["name"], view["function"]["arguments"])


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """`tool_calls`: of an assistant, what it called. `tool_call_id`: of a tool, which call this is the result of."""

    role: str
    content: str
    tool_calls: tuple[WrittenCall, ...] = ()
    tool_call_id: str = ""

    @property
    def spoken(self) -> str:
        """All that is said in it, calls included, for counting."""
        if not self.tool_calls:
            return self.content
        return "\n".join((self.content, *(f"{call.name} {call.arguments}" for call in self.tool_calls)))

    def view(self) -> dict[str, Any]:
        """In OpenAI's form; fields that say nothing are left out."""
        view: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            view["tool_calls"] = [call.view() for call in self.tool_calls]
        if self.tool_call_id:
            view["tool_call_id"] = self.tool_call_id
        return view

    @classmethod
    def read(cls, view: Mapping[str, Any]) -> ChatMessage:
        calls = tuple(map(WrittenCall.read, view.get("tool_calls") or ()))
        return cls(view["role"], view["content"], calls, view.get("tool_call_id") or "")


@dataclass(frozen=True, slots=True)
class Resume:
    """Where to go on: `text` and `token_ids` are the committed output. Without ids only `text` is used, which
    continues a sentence but not necessarily the same token boundaries."""

    prompt_token_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    text: str

    @property
    def by_ids(self) -> bool:
        return bool(self.prompt_token_ids) and (bool(self.token_ids) or not self.text)


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """`max_tokens` is the budget of the whole answer: what `resume` already holds is taken off by the engine.
    `None` for a sampling value leaves it to the replica. `priority`: lower goes first. `session`: what
    requests of one conversation have in common, for routers that keep them together. `extra` is passed through
    and must have been checked by the caller (response_format, tools, logit_bias, ...)."""

    request_id: str
    model: str
    messages: tuple[ChatMessage, ...]
    max_tokens: int
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    cache_salt: str | None = None
    priority: int = 0
    resume: Resume | None = None
    session: str = ""
    extra: Mapping[str, Any] = field(default_factory=lambda: NO_EXTRA)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of this generation alone: after a resume the earlier output counts as prompt."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0


@dataclass(slots=True)
class Delta:
    """All that arrived since the last pull. `tokens` is right even where ids are unknown (then it counts events).
    `prompt_token_ids` comes once, with the first delta, where the replica tells. The last delta of a good stream,
    and only it, has a `finish_reason` (`stop`, `length`, `tool_calls`, ...), the `tool_calls` of the answer, whole, and
    `usage` where the replica counts. After a resume, deltas hold only what is new."""

    text: str = ""
    token_ids: tuple[int, ...] = ()
    tokens: int = 0
    prompt_token_ids: tuple[int, ...] | None = None
    finish_reason: str | None = None
    usage: Usage | None = None
    tool_calls: tuple[WrittenCall, ...] = ()


class DeltaStream(Protocol):
    """One answer on its way: an `AsyncIterator[Delta]`. Iterating wakes the consumer for the first data, then at
    most once a merge period (about 20 ms) however many tokens came, and at the end. The request is sent by the first
    `__anext__`.

    A caller with a clock of its own (one tick for all its streams) awaits `anext()` once, then calls `take()`."""

    def __aiter__(self) -> DeltaStream: ...

    async def __anext__(self) -> Delta: ...

    def take(self) -> Delta | None:
        """What is there now, without waiting; None when nothing is. Raises `EngineFailed` once the text before
        it was taken. After the delta with a `finish_reason` it only returns None."""
        ...

    async def aclose(self) -> None:
        """Stop now; tells the replica to abort when it was still generating. Safe to call twice."""
        ...


# ---------------------------------------------------------------- an engine


@dataclass(frozen=True, slots=True)
class Health:
    """`tokenizer_digest`: as the server's own answers tell it; empty where it does not."""

    ok: bool
    detail: str = ""
    version: str = ""
    context_length: int = 0
    capabilities: frozenset[str] = frozenset()
    served_model: str = ""
    tokenizer_digest: str = ""


@dataclass(frozen=True, slots=True)
class Load:
    """`slots`: answers that can run at once. Ratios are 0..1; None where the engine does not say."""

    running: int
    waiting: int
    slots: int
    kv_used_ratio: float | None = None
    prefix_hit_ratio: float | None = None
    kv_tokens: int | None = None
    generated_tokens: int | None = None


class Engine(Protocol):
    """A connection to one replica. Implementations: `engines.fake.FakeEngine`, `engines.openai_http`."""

    def generate(self, request: GenerationRequest) -> DeltaStream:
        """Before the first delta: EngineOverloaded, EngineUnavailable, EngineRejected. After it: EngineFailed."""
        ...

    async def abort(self, request_id: str) -> None: ...

    async def health(self) -> Health: ...

    async def load(self) -> Load: ...

    async def count_tokens(self, messages: Sequence[ChatMessage]) -> int:
        """Prompt tokens of a chat, template included. Exact where a tokenizer is at hand, else a high estimate."""
        ...

    async def close(self) -> None: ...


# ---------------------------------------------------------------- replicas and models


class ReplicaState(StrEnum):
    STARTING = "starting"
    WARMING = "warming"
    READY = "ready"
    DRAINING = "draining"
    QUARANTINED = "quarantined"
    GONE = "gone"


class ModelState(StrEnum):
    READY = "ready"
    LOADING = "loading"
    UNAVAILABLE = "unavailable"


class Purpose(StrEnum):
    """What a model is for. Chat models answer; the others pool: of a text they make a vector or a score."""

    CHAT = "chat"
    EMBEDDINGS = "embeddings"
    RERANK = "rerank"


def line_name(model: str, region: str) -> str:
    """The line of all who may go to the same replicas. Where these have regions each region has its own, so that what
    is bound to one cannot be placed elsewhere."""
    return f"{model}@{region}" if region else model


@dataclass(frozen=True, slots=True)
class ReplicaInfo:
    """What the registry knows of one replica. Times are Unix seconds.

    `kind` names the adapter (`vllm`, `openai`, `vllm-router`, `llm-d`, `dynamo`, `ray`, `fake`); `capabilities` are
    read from it and from the engine's version. `served_model` is the name to send, where it is not `model`;
    `api_key_env` names the variable that holds the key, for servers that want one. `breaker`: closed, open or
    half_open, as the process that tells it sees it (`inference.breaker`). Digests differ where weights do, or where ids
    stand for other text; they are empty where nobody knows."""

    id: str
    model: str
    url: str
    kind: str
    state: ReplicaState
    slots: int = 1
    running: int = 0
    waiting: int = 0
    kv_used_ratio: float | None = None
    prefix_hit_ratio: float | None = None
    kv_tokens: int | None = None
    context_length: int = 0
    version: str = ""
    weights_digest: str = ""
    tokenizer_digest: str = ""
    tokenizer_path: str = ""
    region: str = ""
    capabilities: frozenset[str] = frozenset()
    served_model: str = ""
    api_key_env: str = ""
    phase: str = ""
    eta_s: float | None = None
    error: str = ""
    breaker: str = "closed"
    updated_at: float = 0.0
    expires_at: float = 0.0

    @property
    def line(self) -> str:
        return line_name(self.model, self.region)


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model as people see it. `eta_s` is set while it loads; `temperature` and `top_p` are its own defaults."""

    id: str
    name: str
    state: ModelState
    context_length: int
    eta_s: int | None = None
    phase: str = ""
    demo: bool = False
    note: str = ""
    default: bool = False
    replicas_ready: int = 0
    replicas_total: int = 0
    temperature: float | None = None
    top_p: float | None = None


@dataclass(frozen=True, slots=True)
class Capacity:
    """Sums over the ready replicas of a model."""

    slots: int
    running: int
    waiting: int
