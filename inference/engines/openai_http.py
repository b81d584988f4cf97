"""Any OpenAI-compatible server over HTTP; vLLM's additions are used where the server is known to have them.

Responsible for: which answers run, aborting them, the watch for silent ones, and questions about health, load and
prompt length. Leaves to `http_answer` one answer, to `http` the connections, to `payloads` the request bodies, and to
`client` which replica is asked.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import orjson

from inference.engines import payloads
from inference.engines.http import HttpClient, HttpError, Timeouts, TooLate
from inference.engines.http_answer import KEY_REFUSED, Answer, refusal
from inference.engines.metrics import parse_metrics
from inference.engines.stream import MERGE_S, MergedStream, Ticker
from inference.protocol import (
    ChatMessage,
    EngineFailed,
    EngineUnavailable,
    FailureKind,
    GenerationRequest,
    Health,
    InferenceError,
    Load,
    ReplicaInfo,
)
from inference.tokens import SPECIMEN, TokenCounter, digest_of_ids

_SWEEP_S = 0.5
_ABORT_S = 2.0


class OpenAIEngine:
    """`info.url` is the server's root or its `/v1`. `info.capabilities` say what may be sent beyond plain OpenAI.

    Subclasses (`routers`) say what differs: `busy`, statuses that mean lack of room; `health_path`, empty where there
    is none; `withheld`, capabilities of the engines behind that do not reach us."""

    busy = frozenset({429, 503})
    health_path = "/health"
    withheld: frozenset[str] = frozenset()

    def __init__(self, info: ReplicaInfo, *, timeouts: Timeouts | None = None, merge_s: float = MERGE_S) -> None:
        self.info = info
        self.timeouts = timeouts or Timeouts()
        parts = urlsplit(info.url)
        root = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))
        key = os.environ.get(info.api_key_env, "") if info.api_key_env else ""
        headers = {"Authorization": f"Bearer {key}"} if key else None
        self.http = HttpClient(root.removesuffix("/v1"), headers=headers, timeouts=self.timeouts)
        self.capabilities = info.capabilities
        self._served_model = info.served_model or info.model
        self._known: Health | None = None
        self._ticker = Ticker(merge_s)
        self._answers: dict[str, Answer] = {}
        self.heard_at = 0.0
        self._sweeping: asyncio.TimerHandle | None = None
        self._errands: set[asyncio.Task[None]] = set()
        self._counter = TokenCounter(Path(info.tokenizer_path) if info.tokenizer_path else None)

    # ------------------------------------------------ answers

    def generate(self, request: GenerationRequest) -> MergedStream:
        return MergedStream(Answer(self, request), self._ticker)

    def headers_for(self, request: GenerationRequest) -> dict[str, str]:
        return {"X-Request-Id": request.request_id}

    async def plan(self, request: GenerationRequest) -> payloads.Call:
        """What to send. For a continuation by ids, also the text that the ids hold and the reader was not given."""
        lag = ""
        if request.resume is not None and request.resume.by_ids and request.resume.token_ids:
            whole = await self._decode(request.resume.token_ids)
            lag = payloads.text_not_given(whole, request.resume.text)
        return payloads.build_call(request, self._served_model, self.capabilities, lag=lag)

    async def _decode(self, ids: Sequence[int]) -> str:
        """Text of output ids; empty where nothing can tell."""
        if (text := await self._counter.decode(ids)) is not None:
            return text
        if "tokenize" not in self.capabilities:
            return ""
        try:
            answer = await self._post("/detokenize", {"model": self._served_model, "tokens": list(ids)})
        except InferenceError:
            return ""
        return str(answer.get("prompt", ""))

    @property
    def mine(self) -> int:
        """Answers of ours that run now."""
        return len(self._answers)

    def enlist(self, answer: Answer) -> None:
        self._answers[answer.request.request_id] = answer
        if self._sweeping is None:
            self._sweeping = asyncio.get_running_loop().call_later(_SWEEP_S, self._sweep)

    def delist(self, answer: Answer) -> None:
        if self._answers.get(answer.request.request_id) is answer:
            del self._answers[answer.request.request_id]

    def _sweep(self) -> None:
        """One timer for all answers finds those that went silent."""
        loop = asyncio.get_running_loop()
        self._sweeping = loop.call_later(_SWEEP_S, self._sweep) if self._answers else None
        now = loop.time()
        for answer in list(self._answers.values()):
            answer.check(now)

    async def abort(self, request_id: str) -> None:
        if answer := self._answers.get(request_id):
            answer.fail(EngineFailed("aborted", FailureKind.ABORTED))
        await self._post_abort(request_id)

    def abort_soon(self, request_id: str) -> None:
        if "abort" in self.capabilities:
            task = asyncio.create_task(self._post_abort(request_id))
            self._errands.add(task)
            task.add_done_callback(self._errands.discard)

    async def _post_abort(self, request_id: str) -> None:
        """Closing the socket has aborted already; this is for proxies in between, so its failure does not matter."""
        if "abort" not in self.capabilities:
            return
        body = orjson.dumps({"request_ids": payloads.engine_ids(request_id)})
        try:
            await self.http.call("POST", "/inference/v1/abort_requests", body, within=_ABORT_S)
        except HttpError:
            return

    # ------------------------------------------------ questions

    async def health(self) -> Health:
        """Also finds out, the first time, what kind of server this is. Never raises."""
        if self._known is not None and self._known.version:
            return await self._pulse(self._known)
        try:
            models = await self.http.call("GET", "/v1/models")
            version = await self.http.call("GET", "/version")
            sick = await self._sickness()
        except HttpError as error:
            return Health(ok=False, detail=str(error))
        if models.status in (401, 403):
            return Health(ok=False, detail=KEY_REFUSED)
        if models.status != 200:
            return Health(ok=False, detail=f"/v1/models says {models.status}")
        if sick and self._must_be_well(version.status == 200):
            return Health(ok=False, detail=sick)
        identity = self._read_identity(object_in(models.body), object_in(version.body) if version.status == 200 else {})
        self._known = replace(identity, tokenizer_digest=await self._tokenizer_digest())
        return self._known

    async def _tokenizer_digest(self) -> str:
        """By what the server makes of a known text, where its files are not known."""
        if self.info.tokenizer_digest or "tokenize" not in self.capabilities:
            return ""
        body = {"model": self._served_model, "prompt": SPECIMEN, "add_special_tokens": False}
        try:
            ids = (await self._post("/tokenize", body)).get("tokens")
        except InferenceError:
            return ""
        return digest_of_ids(ids) if ids and isinstance(ids, list) else ""

    async def _sickness(self) -> str:
        """What the health route says is wrong; empty when all is well. HttpError."""
        if not self.health_path:
            return ""
        answer = await self.http.call("GET", self.health_path)
        return "" if answer.status == 200 else f"{self.health_path} says {answer.status}"

    def _must_be_well(self, is_vllm: bool) -> bool:
        """Servers of an unknown kind need not have the health route."""
        return is_vllm

    async def _pulse(self, known: Health) -> Health:
        """The one cheap question, until it is answered badly: then the server may be another one next time."""
        try:
            detail = await self._sickness()
        except HttpError as error:
            detail = str(error)
        if not detail:
            return known
        self._known = None
        return Health(ok=False, detail=detail)

    def _read_identity(self, models: dict[str, Any], version: dict[str, Any]) -> Health:
        entries = [m for m in models.get("data") or () if isinstance(m, dict)]
        named = next((m for m in entries if m.get("id") == self._served_model), None)
        if named is None and len(entries) == 1 and not self.info.served_model:
            named = entries[0]
            self._served_model = str(named.get("id"))
        number = version.get("version")
        self.capabilities |= self._behind(str(number or "")) - self.withheld
        length = (named or {}).get("max_model_len")
        return Health(
            ok=True,
            detail="" if named else f"the server does not list {self._served_model}",
            version=str(number or ""),
            context_length=length if isinstance(length, int) else 0,
            capabilities=self.capabilities,
            served_model=self._served_model,
        )

    def _behind(self, version: str) -> frozenset[str]:
        """What the engine understands whose version was told; nothing beyond OpenAI's where none was."""
        return payloads.capabilities_of(version) if version else frozenset()

    async def load(self) -> Load:
        """From vLLM's metrics; other servers do not tell, so only our own answers count."""
        mine = Load(running=self.mine, waiting=0, slots=self.info.slots)
        if "metrics" not in self.capabilities:
            return mine
        try:
            answer = await self.http.call("GET", "/metrics")
        except HttpError as error:
            raise EngineUnavailable(str(error)) from None
        if answer.status != 200:
            return mine
        version = self._known.version if self._known else ""
        return parse_metrics(answer.body, slots=self.info.slots, version=version)

    async def ask(self, path: str, body: dict[str, Any], *, within_s: float) -> dict[str, Any]:
        """One whole exchange with the served model. EngineOverloaded, EngineRejected, EngineUnavailable."""
        data = orjson.dumps({"model": self._served_model, **body})
        try:
            answer = await self.http.call("POST", path, data, within=within_s)
        except HttpError as error:
            kind = FailureKind.HUNG if isinstance(error, TooLate) else FailureKind.DIED
            raise EngineUnavailable(str(error), kind) from None
        if answer.status != 200:
            raise refusal(answer.status, answer.headers, answer.body, self.busy)
        return object_in(answer.body)

    async def count_tokens(self, messages: Sequence[ChatMessage]) -> int:
        remote = self._count_remotely if "tokenize" in self.capabilities else None
        return await self._counter.count(messages, remote)

    async def _count_remotely(self, messages: Sequence[ChatMessage]) -> int:
        body = {"model": self._served_model, "messages": payloads.messages_of(messages), "add_generation_prompt": True}
        count = (await self._post("/tokenize", body)).get("count")
        if not isinstance(count, int):
            raise EngineUnavailable("/tokenize did not say a count")
        return count

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = await self.http.call("POST", path, orjson.dumps(body))
        except HttpError as error:
            raise EngineUnavailable(str(error)) from None
        if answer.status != 200:
            raise EngineUnavailable(f"{path} says {answer.status}")
        return object_in(answer.body)

    async def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        for answer in list(self._answers.values()):
            answer.fail(EngineFailed("the engine was closed", FailureKind.ABORTED))
        await asyncio.gather(*self._errands, return_exceptions=True)
        self.http.close()
        # Transports close their sockets in the next turn of the loop.
        await asyncio.sleep(0)


def object_in(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is; empty when it is none."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
