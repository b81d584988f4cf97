"""The environment of the real vllm-router, which the conformance suite runs behind. For tests only."""

from __future__ import annotations

from pathlib import Path

from infra.local.console import paint, say
from infra.local.engine import REQUIREMENTS, python_version
from infra.local.layout import Layout
from infra.local.registries import uv_environment
from infra.local.steps import StepFailed, Steps, digest_of, skipped

LOCK = REQUIREMENTS / "router.lock"


def ensure(layout: Layout, steps: Steps, uv: Path) -> None:
    """Install it when it is missing or its lock changed. Where it cannot be had, its tests are skipped and say so."""
    name = "vllm-router, for tests"
    home = layout.home / "vllm-router"
    digest = digest_of([LOCK])
    if (home / "bin" / "vllm-router").exists() and steps.is_current("router", digest):
        skipped(name)
        return
    make: list[str | Path] = [uv, "venv", "--clear", "--no-project", "--python", python_version(), home]
    install: list[str | Path] = [uv, "pip", "install", "--python", home / "bin" / "python", "--no-deps"]
    locked: list[str | Path] = ["--require-hashes", "--only-binary", ":all:", "-r", LOCK]
    (layout.stamps / "router").unlink(missing_ok=True)
    try:
        steps.run(name, [make, [*install, *locked]], env=uv_environment(), measure=home)
    except StepFailed as failure:
        say(paint(f"  Tests of the real vllm-router are skipped: {failure}", "yellow"))
        return
    steps.mark("router", digest)
