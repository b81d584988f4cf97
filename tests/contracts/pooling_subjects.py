"""What the pooling suite is run against: the scripted server, and vLLM with the packaged model as an embedder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from inference.engines.fake_server import serve
from inference.engines.openai_http import OpenAIEngine
from inference.manifest import DEFAULT_MANIFEST
from tests.contracts.engine_subjects import LiveSupervisor, engine_to

POOLING_MODEL = "smollm2-embedder"


@dataclass
class PoolingSubject:
    """`noise`: how far from 1 the cosine of two vectors of one text may be, when it is read beside others."""

    engine: OpenAIEngine
    dimensions: int
    noise: float


@asynccontextmanager
async def scripted() -> AsyncIterator[PoolingSubject]:
    server = await serve()
    engine = await engine_to(server)
    yield PoolingSubject(engine, 384, noise=1e-9)
    await engine.close()
    await server.close()


@asynccontextmanager
async def live(supervisor: LiveSupervisor) -> AsyncIterator[PoolingSubject]:
    engine = OpenAIEngine(supervisor.until_ready().replica)
    yield PoolingSubject(engine, 576, noise=0.02)
    await engine.close()


def write_manifest(folder: Path) -> Path:
    """The packaged model as one that makes vectors: of no use to search, and real in all else."""
    packaged: dict[str, Any] = yaml.safe_load(DEFAULT_MANIFEST.read_text())["models"][0]
    entry = {key: packaged[key] for key in ("name", "weights")}
    entry |= {"id": POOLING_MODEL, "purpose": "embeddings", "context_length": 512, "args": {"convert": "embed"}}
    path = folder / "pooling.yaml"
    path.write_text(yaml.safe_dump({"models": [entry]}))
    return path
