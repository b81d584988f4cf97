"""Installs what this checkout needs, step by step; a step whose inputs did not change is skipped.

uv, the project's Python environment, the built front end and the inference engine's environment. Says what to
do when something is missing; installs system packages only for tests (see `system`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from infra.local import engine, secret_store
from infra.local.console import human_size, size_of
from infra.local.layout import Layout
from infra.local.registries import uv_environment
from infra.local.steps import StepFailed, Steps, digest_of, skipped

NODE_OLDEST = (20, 19)
DISK_NEEDED = {"python": 2 << 30, "engine": 4 << 30}
UV_PINNED = Path(__file__).with_name("uv.txt")


def bootstrap(layout: Layout, *, tests: bool = False, with_engine: bool = True) -> None:
    """Bring the checkout up to date. `tests` adds the development packages. Raises StepFailed."""
    layout.prepare()
    secret_store.load(layout.state / "secrets.json")
    # Collected static files go here in images; the web process expects the folder everywhere.
    (layout.repository / "build" / "static").mkdir(parents=True, exist_ok=True)
    steps = Steps(layout)
    uv = ensure_uv(layout, steps)
    ensure_python_packages(layout, steps, uv, tests=tests)
    ensure_frontend(layout, steps)
    if with_engine:
        engine.ensure(layout, steps, uv)


def need_disk(layout: Layout, kind: str) -> None:
    free = shutil.disk_usage(layout.repository).free
    if free < DISK_NEEDED[kind]:
        raise StepFailed(
            f"Only {human_size(free)} are free at {layout.repository}; this step needs "
            f"{human_size(DISK_NEEDED[kind])}. Free some space and run it again."
        )


def ensure_uv(layout: Layout, steps: Steps) -> Path:
    """uv from PATH when it is at least as new as the pinned one, else installed by pip, pinned by hash."""
    found = shutil.which("uv")
    if found and _version([found, "--version"]) >= _pinned_uv():
        skipped("uv", found)
        return Path(found)
    own = layout.tools / "bin" / "uv"
    digest = digest_of([UV_PINNED], sys.version)
    if own.exists() and steps.is_current("uv", digest):
        skipped("uv")
        return own
    python = layout.tools / "bin" / "python"
    install: list[str | Path] = ["--quiet", "--require-hashes", "--only-binary", ":all:", "-r", UV_PINNED]
    try:
        steps.run(
            "uv",
            [
                [sys.executable, "-m", "venv", "--clear", layout.tools],
                [python, "-m", "pip", "install", *install],
            ],
            measure=layout.tools,
        )
    except StepFailed as failure:
        if "ensurepip" in str(failure):
            raise StepFailed(
                "This Python cannot make environments (Debian and Ubuntu split that off).\n"
                "Run: sudo apt install python3-venv    or install uv yourself, then run it again."
            ) from failure
        raise
    steps.mark("uv", digest)
    return own


def ensure_python_packages(layout: Layout, steps: Steps, uv: Path, *, tests: bool) -> None:
    digest = digest_of([layout.repository / "uv.lock"])
    ready = layout.python.exists()
    if ready and steps.is_current("python-dev", digest):
        skipped("Python packages")
        return
    if ready and not tests and steps.is_current("python", digest):
        skipped("Python packages")
        return
    need_disk(layout, "python")
    # Without --inexact a developer's tools would be removed again by each start.
    scope = ["--all-groups"] if tests else ["--no-dev", "--inexact"]
    steps.run("Python packages", [[uv, "sync", "--frozen", *scope]], env=uv_environment(), measure=layout.venv)
    steps.mark("python-dev" if tests else "python", digest)
    if not tests:
        (layout.stamps / "python-dev").unlink(missing_ok=True)


def frontend_inputs(frontend: Path) -> Iterator[Path]:
    """Every file that a build of the front end reads, its packages excepted."""
    for folder, folders, names in os.walk(frontend):
        folders[:] = [name for name in folders if name not in {"node_modules", "dist", "coverage"}]
        for name in names:
            if not name.endswith((".test.ts", ".test.tsx", ".tsbuildinfo")):
                yield Path(folder, name)


def ensure_frontend(layout: Layout, steps: Steps) -> None:
    frontend = layout.repository / "frontend"
    if not (frontend / "package.json").exists():
        skipped("front end", "not in this checkout")
        return
    sources = digest_of(frontend_inputs(frontend))
    if (frontend / "dist" / "index.html").exists() and steps.is_current("front-end", sources):
        skipped("front end")
        return
    npm = need_node()
    ensure_node_packages(layout, steps)
    steps.run("front end", [[npm, "run", "build"]], cwd=frontend, measure=frontend / "dist")
    steps.mark("front-end", sources)


def ensure_node_packages(layout: Layout, steps: Steps) -> None:
    """Install the front end's packages unless exactly the locked ones are there."""
    frontend = layout.repository / "frontend"
    if node_packages_match(frontend):
        return
    steps.run(
        "front-end packages",
        [[need_node(), "ci", "--no-audit", "--no-fund", "--prefer-offline"]],
        cwd=frontend,
        measure=frontend / "node_modules",
    )


def node_packages_match(frontend: Path) -> bool:
    """Whether npm's record of what it installed agrees with the lock; packages for other systems may lack."""
    try:
        locked = json.loads((frontend / "package-lock.json").read_text())["packages"]
        there = json.loads((frontend / "node_modules" / ".package-lock.json").read_text())["packages"]
    except (OSError, ValueError, KeyError):
        return False
    wanted = {path: entry for path, entry in locked.items() if path}
    if any(wanted.get(path, {}).get("integrity") != entry.get("integrity") for path, entry in there.items()):
        return False
    return all(path in there or entry.get("optional") for path, entry in wanted.items())


def need_node() -> str:
    node, npm = shutil.which("node"), shutil.which("npm")
    wanted = ".".join(map(str, NODE_OLDEST))
    if not node or not npm:
        raise StepFailed(
            f"Node.js {wanted} or newer is needed to build the front end, and none is on PATH.\n"
            "Install it from your system's packages or nodejs.org, then run it again."
        )
    version = _version([node, "--version"])
    if version < NODE_OLDEST:
        raise StepFailed(f"Node.js {wanted} or newer is needed; {node} is {'.'.join(map(str, version))}.")
    return npm


def _version(command: list[str]) -> tuple[int, ...]:
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return (0,)
    number = re.search(r"(\d+(?:\.\d+)+)", said)
    return tuple(int(part) for part in number.group(1).split(".")) if number else (0,)


def _pinned_uv() -> tuple[int, ...]:
    number = re.search(r"uv==(\d+(?:\.\d+)+)", UV_PINNED.read_text())
    return tuple(int(part) for part in number.group(1).split(".")) if number else (0,)


def installed_sizes(layout: Layout) -> str:
    """JSON of what was installed and how large it is, for `status` and the documentation."""
    parts = {"python": layout.venv, "engine": layout.engine, "front_end": layout.repository / "frontend/node_modules"}
    return json.dumps({name: human_size(size_of(path)) for name, path in parts.items() if path.exists()})
