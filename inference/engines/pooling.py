"""What pooling models are asked over HTTP: vectors of texts by `/v1/embeddings`, scores of passages by `/v1/rerank`.

Responsible for: the requests, and holding answers to what was asked: one finite result a text, in its order. Leaves
to `openai_http` the exchange and to `inference.pooling` which replica is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from inference.protocol import Engine, EngineOverloaded, EngineRejected, EngineUnavailable, FailureKind, Purpose

T = TypeVar("T")
Vector = tuple[float, ...]


@runtime_checkable
class Pooler(Protocol):
    """An engine that takes whole exchanges: one over HTTP. `capabilities` as in `ReplicaInfo`."""

    capabilities: frozenset[str]

    async def ask(self, path: str, body: dict[str, Any], *, within_s: float) -> dict[str, Any]: ...


async def embed(engine: Engine, texts: Sequence[str], *, within_s: float) -> list[Vector]:
    """A vector of length 1 for each text. EngineOverloaded, EngineRejected, EngineUnavailable."""
    answer = await _ask(engine, "/v1/embeddings", {"input": list(texts), "encoding_format": "float"}, within_s)
    vectors = _in_order(answer.get("data"), len(texts), _unit_vector)
    if len({len(vector) for vector in vectors}) > 1:
        raise EngineUnavailable("the vectors of one answer differ in length", FailureKind.GARBAGE)
    return vectors


async def rerank(engine: Engine, query: str, passages: Sequence[str], *, within_s: float) -> list[float]:
    """How well each passage answers the query, by the model's own scale. Errors as `embed`."""
    answer = await _ask(engine, "/v1/rerank", {"query": query, "documents": list(passages)}, within_s)
    return _in_order(answer.get("results"), len(passages), _score)


async def try_pooling(engine: Engine, purpose: Purpose, *, within_s: float) -> None:
    """One small request, to warm a replica up or to see whether it is well. InferenceError when it is not."""
    try:
        if purpose is Purpose.EMBEDDINGS:
            await embed(engine, ["Hello"], within_s=within_s)
        else:
            await rerank(engine, "Hello", ["Hello"], within_s=within_s)
    except EngineOverloaded:
        return


async def _ask(engine: Engine, path: str, body: dict[str, Any], within_s: float) -> dict[str, Any]:
    if not isinstance(engine, Pooler):
        raise EngineRejected(501, "this engine does not pool")
    if "token_ids" in engine.capabilities:
        # vLLM would refuse a text that is longer than its model reads; of others nothing is known.
        body = {**body, "truncate_prompt_tokens": -1}
    return await engine.ask(path, body, within_s=within_s)


def _in_order(items: Any, count: int, read: Callable[[dict[str, Any]], T]) -> list[T]:
    """The results by their `index`: each exactly once, or the answer is of no use."""
    try:
        found = {item["index"]: read(item) for item in items}
        results = [found[index] for index in range(count)]
    except (TypeError, KeyError, ValueError) as error:
        raise EngineUnavailable(f"not an answer to {count} texts: {error!r}", FailureKind.GARBAGE) from None
    if len(items) != count:
        raise EngineUnavailable(f"{len(items)} results for {count} texts", FailureKind.GARBAGE)
    return results


def _unit_vector(item: dict[str, Any]) -> Vector:
    vector = [float(value) for value in item["embedding"]]
    norm = math.hypot(*vector)
    if not 0 < norm < math.inf:
        raise ValueError(f"a vector of length {norm}")
    return tuple(value / norm for value in vector)


def _score(item: dict[str, Any]) -> float:
    score = float(item["relevance_score"])
    if not math.isfinite(score):
        raise ValueError(f"a score of {score}")
    return score
