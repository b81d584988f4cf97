"""Watches replicas that someone else runs, given by URL: health, load, identity, as registry records.

Responsible for: the `model=url` list and turning answers of an engine into a `ReplicaInfo`. Leaves to `client` and
`supervisor` when to ask and where to publish.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

from redis.asyncio import Redis as AsyncRedis

from inference.engines.pooling import try_pooling
from inference.protocol import (
    ChatMessage,
    Engine,
    EngineOverloaded,
    EngineRejected,
    EngineUnavailable,
    FailureKind,
    GenerationRequest,
    InferenceError,
    Purpose,
    ReplicaInfo,
    ReplicaState,
)
from inference.registry import HEARTBEAT_S, ModelCard, Record, publish_records, stamp
from inference.routing.types import ABILITIES

KINDS = ("openai", "vllm-router", "llm-d", "dynamo", "ray")
PROBE_S = 10.0
_DEFAULT_SLOTS = 64
_LOOK_S = 5.0
# How long a look waits for a warm-up; a longer one goes on meanwhile.
_WARM_INLINE_S = 2.0
_WARM_S = 120.0


def parse_replica_urls(text: str | Sequence[str]) -> tuple[tuple[str, str], ...]:
    """`a=http://h:1,b=https://h/v1` as (model, url) pairs; ValueError names the entry that is wrong."""
    entries = text.split(",") if isinstance(text, str) else text
    pairs = []
    for entry in filter(None, (e.strip() for e in entries)):
        model, found, url = entry.partition("=")
        if not found or urlsplit(url).scheme not in ("http", "https", "fake") or not urlsplit(url).netloc:
            raise ValueError(f"replica {entry!r} is not of the form model=http://host:port")
        if "@" in model:
            raise ValueError(f"replica {entry!r}: a model's name has no @, which stands before a region")
        said = dict(parse_qsl(urlsplit(url).query))
        for name, known in (("kind", KINDS), ("purpose", tuple(Purpose))):
            if name in said and said[name] not in known:
                raise ValueError(f"replica {entry!r}: {said[name]!r} is none of {', '.join(known)}")
        if len(said.get("weights", "")) > 64:
            raise ValueError(f"replica {entry!r}: a name of weights has at most 64 characters")
        if unknown := set(_cannot(said)) - ABILITIES:
            raise ValueError(
                f"replica {entry!r}: {', '.join(sorted(unknown))} is none of {', '.join(sorted(ABILITIES))}"
            )
        if "purpose" in said and urlsplit(url).scheme == "fake":
            raise ValueError(f"replica {entry!r}: an engine in the process does not pool")
        pairs.append((model.strip(), url.strip().rstrip("/")))
    return tuple(pairs)


def static_record(model: str, url: str, *, card: ModelCard | None = None) -> Record:
    """The record of a remote replica before the first look at it. `?slots=N` in the URL says how many it takes,
    `?level=N` how strong its model is, `?region=eu` where it stands, `?kind=vllm-router` (or llm-d, dynamo, ray) that
    it is a router, `?purpose=embeddings` (or rerank) what its model is for, `?cannot=tools,structured` what it is not
    able to, `?weights=NAME` which weights it has, by any name that others of the model have only where theirs are the
    same."""
    parts = urlsplit(url)
    said = dict(parse_qsl(parts.query))
    slots = int(said.get("slots", _DEFAULT_SLOTS))
    kind = "fake" if parts.scheme == "fake" else said.get("kind", "openai")
    info = ReplicaInfo(
        f"{model}@{parts.netloc}",
        model,
        url,
        kind,
        ReplicaState.STARTING,
        slots=slots,
        region=said.get("region", ""),
        weights_digest=said.get("weights", ""),
    )
    purpose, level = Purpose(said.get("purpose", Purpose.CHAT)), int(said.get("level", 1))
    return Record(info, card or ModelCard(model, model, level=level, purpose=purpose, cannot=_cannot(said)))


def _cannot(said: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(filter(None, said.get("cannot", "").split(",")))


async def try_out(engine: Engine, model: str, *, within_s: float, purpose: Purpose = Purpose.CHAT) -> None:
    """One short answer: the first one pays for lazy set-up, and proves that the replica can answer. A refusal is an
    answer too, and so is one whose few tokens were all spent on thinking. Of a model that pools, a vector or a score.
    InferenceError when there is none."""
    if purpose is not Purpose.CHAT:
        await try_pooling(engine, purpose, within_s=within_s)
        return
    request = GenerationRequest(
        f"probe-{secrets.token_hex(4)}", model, (ChatMessage("user", "Hello"),), 4, temperature=0.0
    )
    stream = engine.generate(request)
    try:
        async with asyncio.timeout(within_s):
            deltas = [delta async for delta in stream]
    except (EngineOverloaded, EngineRejected):
        return
    except TimeoutError:
        raise EngineUnavailable(f"no short answer within {within_s:g} s", FailureKind.HUNG) from None
    finally:
        await stream.aclose()
    if not any(delta.tokens or delta.finish_reason == "length" for delta in deltas):
        raise EngineUnavailable("a short answer had no token", FailureKind.GARBAGE)


async def probe(engine: Engine, info: ReplicaInfo) -> ReplicaInfo:
    """`info` with today's state, load and whatever the engine tells about itself."""
    try:
        health = await engine.health()
        if not health.ok:
            return stamp(
                replace(
                    info,
                    state=ReplicaState.GONE,
                    error=health.detail,
                    tokenizer_digest="",
                    running=0,
                    waiting=0,
                )
            )
        load = await engine.load()
    except InferenceError as error:
        return stamp(replace(info, state=ReplicaState.GONE, error=str(error), running=0, waiting=0))
    return stamp(
        replace(
            info,
            state=ReplicaState.READY,
            error=health.detail,
            version=health.version or info.version,
            context_length=health.context_length or info.context_length,
            capabilities=health.capabilities or info.capabilities,
            served_model=health.served_model or info.served_model,
            tokenizer_digest=health.tokenizer_digest or info.tokenizer_digest,
            slots=load.slots or info.slots,
            running=load.running,
            waiting=load.waiting,
            kv_used_ratio=load.kv_used_ratio,
            prefix_hit_ratio=load.prefix_hit_ratio,
            kv_tokens=load.kv_tokens,
        )
    )


class StaticReplicas:
    """Replicas given by URL (PARLEY_REPLICA_URLS) or as records, with engines of their own for the questions
    asked here. One that appears, or comes back, gives a short answer before it counts as ready."""

    def __init__(
        self,
        urls: str | Sequence[str],
        engine_for: Callable[[ReplicaInfo], Engine],
        *,
        records: Sequence[Record] = (),
    ) -> None:
        self._engine_for = engine_for
        self._records = {r.replica.id: r for r in (static_record(*pair) for pair in parse_replica_urls(urls))}
        self._records |= {r.replica.id: r for r in records}
        self._engines: dict[str, Engine] = {}
        self._told: dict[str, ReplicaState] = {}
        self._warming: dict[str, asyncio.Task[None]] = {}

    def records(self) -> tuple[Record, ...]:
        return tuple(self._records.values())

    async def probe(self) -> None:
        await asyncio.gather(*(self._probe_one(key) for key in self._records))

    async def probe_always(self) -> None:
        """Until cancelled, once a heartbeat; a replica that does not answer holds up nobody else."""
        while self._records:
            await asyncio.sleep(HEARTBEAT_S)
            await self.probe()

    async def _probe_one(self, key: str) -> None:
        record = self._records[key]
        if key not in self._engines:
            self._engines[key] = self._engine_for(record.replica)
        seen = await self._look(key, record.replica)
        if seen.state is ReplicaState.READY and record.replica.state is not ReplicaState.READY:
            seen = await self._warm(key, seen, record.card.purpose)
        self._records[key] = replace(record, replica=seen)

    async def _look(self, key: str, info: ReplicaInfo) -> ReplicaInfo:
        try:
            async with asyncio.timeout(_LOOK_S):
                return await probe(self._engines[key], info)
        except TimeoutError:
            return stamp(replace(info, state=ReplicaState.GONE, error=f"no answer within {_LOOK_S:g} s"))

    async def _warm(self, key: str, seen: ReplicaInfo, purpose: Purpose) -> ReplicaInfo:
        """`seen` when it has answered; warming while it has not yet, quarantined when it failed to."""
        if key not in self._warming:
            answer = try_out(self._engines[key], seen.model, within_s=_WARM_S, purpose=purpose)
            self._warming[key] = asyncio.create_task(answer)
        await asyncio.wait({self._warming[key]}, timeout=_WARM_INLINE_S)
        if not self._warming[key].done():
            return replace(seen, state=ReplicaState.WARMING, phase="warming up")
        try:
            self._warming.pop(key).result()
        except InferenceError as error:
            return replace(seen, state=ReplicaState.QUARANTINED, error=f"it failed its warm-up: {error}")
        return replace(seen, phase="")

    async def publish(self, redis: AsyncRedis) -> None:
        """For processes that only read the registry. A supervisor that watches the same URL writes the same."""
        states = {r.replica.id: r.replica.state for r in self.records()}
        changed = {r.card.id for r in self.records() if self._told.get(r.replica.id) is not r.replica.state}
        if states:
            await publish_records(redis, self.records(), changed=changed)
            self._told = states

    async def close(self) -> None:
        for task in self._warming.values():
            task.cancel()
        await asyncio.gather(*self._warming.values(), return_exceptions=True)
        await asyncio.gather(*(e.close() for e in self._engines.values()), return_exceptions=True)
        self._engines = {}
