"""Makes the engine for a replica from what the registry says of it."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

from inference.engines.fake import FakeEngine
from inference.engines.script import Script
from inference.protocol import Engine, ReplicaInfo


def make_engine(info: ReplicaInfo, *, merge_s: float = 0.02) -> Engine:
    """`fake://...` is scripted and in this process; everything else speaks OpenAI's HTTP."""
    url = urlsplit(info.url)
    if url.scheme == "fake":
        knobs = {k: int(v) for k, v in parse_qsl(url.query)}
        script = Script(
            n=knobs.get("n", 40),
            ttft_ms=knobs.get("ttft", 0),
            itl_ms=knobs.get("itl", 0),
        )
        return FakeEngine(slots=knobs.get("slots", 64), default=script, merge_s=merge_s)
    from inference.engines.openai_http import OpenAIEngine

    return OpenAIEngine(info, merge_s=merge_s)
