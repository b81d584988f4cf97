"""Routers in front of many engines, each a small class: its headers, its refusals, its health, what it passes on.

Sources: vllm-router 0.1 (PyPI; run in front of two servers, and docs/load_balancing of its repository); llm-d's "EPP
HTTP Headers Reference"; NVIDIA Dynamo's "Health Check Reference" and "Request Rejection"; Ray Serve's
`BackpressureConfig` and HTTP guide. What a document does not promise is not sent. A router places requests itself, so
one of them is one replica to us, with the slots of all that is behind it.
"""

from __future__ import annotations

from inference.engines.http import HttpError
from inference.engines.openai_http import OpenAIEngine, object_in
from inference.engines.payloads import VLLM
from inference.protocol import EngineUnavailable, GenerationRequest, Load


class VllmRouterEngine(OpenAIEngine):
    """vllm-router passes vLLM's fields and token ids on. `X-Session-ID` comes first among what it hashes; its
    `/health` says 200 without any worker, `/readiness` does not; its `/metrics` are those of one worker of many."""

    health_path = "/readiness"
    withheld = frozenset({"metrics", "abort"})

    def headers_for(self, request: GenerationRequest) -> dict[str, str]:
        return {**super().headers_for(request), **_named("X-Session-ID", request.session)}

    async def load(self) -> Load:
        """Requests that the router has at its workers. Not under every policy does it count them (consistent_hash
        does not), so that ours are the least that there are."""
        try:
            answer = await self.http.call("GET", "/workers")
        except HttpError as error:
            raise EngineUnavailable(str(error)) from None
        workers = object_in(answer.body).get("workers") or ()
        loads = [w.get("load") for w in workers if isinstance(w, dict)]
        told = sum(n for n in loads if isinstance(n, int))
        return Load(running=max(told, self.mine), waiting=0, slots=self.info.slots)


class LlmDEngine(OpenAIEngine):
    """llm-d's gateway shows `/v1` alone and passes bodies on to vLLM. Requests are fair by the organization's salt,
    which says nothing about it; flow control refuses with 429 or 503."""

    health_path = ""
    withheld = frozenset({"metrics", "abort", "tokenize"})

    def headers_for(self, request: GenerationRequest) -> dict[str, str]:
        fairness = request.cache_salt or ""
        return {
            **super().headers_for(request),
            **_named("x-llm-d-inference-fairness-id", fairness),
            # Its name before version 0.8.
            **_named("x-gateway-inference-fairness-id", fairness),
        }

    def _behind(self, version: str) -> frozenset[str]:
        return VLLM


class DynamoEngine(OpenAIEngine):
    """Dynamo's frontend refuses with 529, before version 1.3 with 503; `/health` is 200 and says "unhealthy" while no
    worker is there."""

    busy = frozenset({429, 503, 529})

    def headers_for(self, request: GenerationRequest) -> dict[str, str]:
        return {**super().headers_for(request), **_named("X-Dynamo-Session-ID", request.session)}

    async def _sickness(self) -> str:
        answer = await self.http.call("GET", self.health_path)
        status = object_in(answer.body).get("status")
        return "" if answer.status == 200 and status == "healthy" else f"/health says {answer.status}, {status}"

    def _must_be_well(self, is_vllm: bool) -> bool:
        return True

    def _behind(self, version: str) -> frozenset[str]:
        return frozenset({"usage"})


class RayEngine(OpenAIEngine):
    """Ray Serve LLM refuses with 503 or, where configured, 429 with Retry-After; its proxies answer `/-/healthz`."""

    health_path = "/-/healthz"

    def _must_be_well(self, is_vllm: bool) -> bool:
        return True

    def _behind(self, version: str) -> frozenset[str]:
        return frozenset({"usage"})


ROUTERS: dict[str, type[OpenAIEngine]] = {
    "vllm-router": VllmRouterEngine,
    "llm-d": LlmDEngine,
    "dynamo": DynamoEngine,
    "ray": RayEngine,
}


def _named(name: str, value: str) -> dict[str, str]:
    return {name: value} if value else {}
