"""What the inference processes read from their environment, in one place.

REDIS_URL, PARLEY_STATE_DIR, PARLEY_MANIFEST, PARLEY_REPLICA_URLS, PARLEY_VLLM_PYTHON, PARLEY_VLLM (cpu, gpu, none),
PARLEY_REPLICA_HOST (the name under which runners on a private network reach our replicas; loopback otherwise),
PARLEY_REGION (where this machine stands, for data that must stay in a region).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from inference.manifest import DEFAULT_MANIFEST


@dataclass(frozen=True, slots=True)
class Settings:
    redis_url: str
    state_dir: Path
    manifest: Path
    manifest_is_default: bool
    replica_urls: str
    engine_python: Path
    device: str
    # Replicas have no authentication on most of their routes: never a public address.
    replica_host: str = "127.0.0.1"
    region: str = ""

    @property
    def weights_dir(self) -> Path:
        return self.state_dir / "weights"

    @property
    def logs_dir(self) -> Path:
        return self.state_dir / "logs"

    @property
    def run_dir(self) -> Path:
        return self.state_dir / "run"


def read_settings(environment: Mapping[str, str] | None = None, *, manifest: Path | None = None) -> Settings:
    env = os.environ if environment is None else environment
    repository = Path(__file__).resolve().parents[1]
    state = Path(env.get("PARLEY_STATE_DIR") or repository / ".parley").absolute()
    named = manifest or (Path(env["PARLEY_MANIFEST"]) if env.get("PARLEY_MANIFEST") else None)
    chosen = (named or DEFAULT_MANIFEST).absolute()
    return Settings(
        redis_url=env.get("REDIS_URL", ""),
        state_dir=state,
        manifest=chosen,
        manifest_is_default=chosen == DEFAULT_MANIFEST,
        replica_urls=env.get("PARLEY_REPLICA_URLS", ""),
        engine_python=Path(env.get("PARLEY_VLLM_PYTHON") or state / "vllm" / "bin" / "python"),
        device=env.get("PARLEY_VLLM") or ("gpu" if shutil.which("nvidia-smi") else "cpu"),
        replica_host=env.get("PARLEY_REPLICA_HOST") or "127.0.0.1",
        region=env.get("PARLEY_REGION", ""),
    )
