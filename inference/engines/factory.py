"""Makes the engine for a replica from what the registry says of it and from the limits in the environment.

PARLEY_HANG_S: seconds without a token after which an answer counts as hung (12). PARLEY_FIRST_TOKEN_S: how long the
first token may take while the replica's other answers go on (60). PARLEY_PREFILL_RATE: prompt tokens a second that a
replica reads at least (200); what a prompt needs at this rate is added before its first token.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from inference.engines.fake import FakeEngine
from inference.engines.http import FIRST_TOKEN_S, HANG_S, PREFILL_RATE, Timeouts
from inference.engines.script import Script
from inference.protocol import Engine, ReplicaInfo


def make_engine(info: ReplicaInfo, *, merge_s: float = 0.02) -> Engine:
    """`fake://...` is scripted and in this process; everything else speaks OpenAI's HTTP, as `info.kind` does it."""
    url = urlsplit(info.url)
    if url.scheme == "fake":
        knobs = dict(parse_qsl(url.query))
        script = Script(
            n=int(knobs.get("n", 40)),
            ttft_ms=int(knobs.get("ttft", 0)),
            itl_ms=int(knobs.get("itl", 0)),
        )
        return FakeEngine(slots=int(knobs.get("slots", 64)), default=script, merge_s=merge_s)
    from inference.engines.openai_http import OpenAIEngine
    from inference.engines.routers import ROUTERS

    return ROUTERS.get(info.kind, OpenAIEngine)(info, timeouts=read_timeouts(os.environ), merge_s=merge_s)


def read_timeouts(environment: Mapping[str, str]) -> Timeouts:
    """ValueError when a limit is not a positive number."""
    hang = _positive(environment, "PARLEY_HANG_S", HANG_S)
    return Timeouts(
        idle=hang,
        silence=hang,
        first_token=_positive(environment, "PARLEY_FIRST_TOKEN_S", FIRST_TOKEN_S),
        prefill_rate=_positive(environment, "PARLEY_PREFILL_RATE", PREFILL_RATE),
    )


def _positive(environment: Mapping[str, str], name: str, default: float) -> float:
    value = float(environment.get(name) or default)
    if value <= 0:
        raise ValueError(f"{name} must be more than 0")
    return value
