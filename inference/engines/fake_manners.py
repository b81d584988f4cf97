"""Which server the scripted one imitates: the routes there are, the fields that are understood, the refusals.

Responsible for: facts about each kind, from its documentation (`routers` names the pages) and, for vllm-router, from
running it. Leaves to `fake_server` what a route answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

_VLLM = frozenset({"/version", "/health", "/metrics", "/tokenize", "/detokenize", "/inference/v1/abort_requests"})


@dataclass(frozen=True, slots=True)
class Manner:
    """`additions`: vLLM's own request fields are understood. `full`: the status of a refusal for lack of room."""

    routes: frozenset[str]
    additions: bool = True
    full: int = 503


MANNERS: Mapping[str, Manner] = MappingProxyType(
    {
        "vllm": Manner(_VLLM),
        "generic": Manner(frozenset({"/health"}), additions=False),
        "vllm-router": Manner(_VLLM - {"/inference/v1/abort_requests"} | {"/readiness", "/workers"}),
        "llm-d": Manner(frozenset(), full=429),
        "dynamo": Manner(frozenset({"/health", "/live"}), additions=False, full=529),
        "ray": Manner(frozenset({"/-/healthz"}), additions=False),
    }
)
