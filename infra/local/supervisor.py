"""Starts every piece in order, keeps them running, and stops them in order.

One supervisor per state folder (a lock says so). It writes what it knows to `run/status.json` for `status`,
`down` and a detached start. Whatever a killed predecessor left behind is ended first.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from infra.local import pieces, secret_store
from infra.local.console import StepLine, paint, say
from infra.local.keeper import Keeper, Piece
from infra.local.layout import Layout
from infra.local.logs import LogHub
from infra.local.models import ModelWatch
from infra.local.pieces import Plan
from infra.local.ports import holder, is_free
from infra.local.processes import end_all, identify, marked
from infra.local.steps import digest_of

# How long each piece may take to serve before the person is told; it is tried further all the same.
PATIENCE = {"postgres": 60.0, "valkey": 60.0, "s3": 60.0, "web": 60.0}
# A store that fails this often at its very start ends the start: nothing can run without it.
TRIES = 4


class StartFailed(Exception):
    """Parley cannot start; the message says why and what to do."""


@dataclass
class Supervisor:
    layout: Layout
    plan: Plan
    hub: LogHub
    quiet: bool = False
    keepers: dict[str, Keeper] = field(default_factory=dict)
    state: str = "starting"
    began: float = field(default_factory=time.monotonic)
    # A signal sets `stop`; a second one sets `hurry`.
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    hurry: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Until a signal comes. Raises StartFailed, with everything stopped."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._on_signal)
        starting = asyncio.create_task(self._start())
        stopping = asyncio.create_task(self.stop.wait())
        try:
            await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                await stopping
        finally:
            starting.cancel()
            with contextlib.suppress(asyncio.CancelledError, StartFailed):
                await starting
            await self._stop_all()

    def _on_signal(self) -> None:
        (self.hurry if self.stop.is_set() else self.stop).set()

    async def _start(self) -> None:
        step = StepLine("data stores")
        await asyncio.to_thread(pieces.prepare, self.plan)
        stores = self._keep(pieces.data_pieces(self.plan))
        await asyncio.gather(*(self._await_store(keeper) for keeper in stores))
        if self.plan.postgres:
            await asyncio.to_thread(self.plan.postgres.ensure_database)
        step.end("ok", "green", ", ".join(keeper.piece.name for keeper in stores) or "elsewhere")
        await self._migrate()
        if self.plan.objects_elsewhere:
            await self._manage("prepare_storage")
        step = StepLine("web, runner, workers")
        web = self._keep(pieces.app_pieces(self.plan))[0]
        while not await web.wait_ready(PATIENCE["web"]):
            say(paint(f"  The web process does not serve yet; see {self.layout.logs / 'web.log'}.", "yellow"))
        step.end("ok", "green", self.plan.url)
        self._keep(pieces.engine_pieces(self.plan))
        self.hub.muted = self.quiet
        self.state = "ready"
        self._publish()
        watch = ModelWatch(self.layout, self.plan.addresses["REDIS_URL"])
        await watch.announce(self.plan.url, time.monotonic() - self.began)

    def _keep(self, wanted: Sequence[Piece]) -> list[Keeper]:
        started = []
        for piece in wanted:
            keeper = self.keepers[piece.name] = Keeper(piece, self.hub, self._publish)
            keeper.start()
            started.append(keeper)
        return started

    async def _await_store(self, keeper: Keeper) -> None:
        deadline = time.monotonic() + PATIENCE[keeper.piece.name]
        while not await keeper.wait_ready(0.2):
            if keeper.restarts >= TRIES or time.monotonic() > deadline:
                log = self.layout.logs / f"{keeper.piece.name}.log"
                end = "\n".join(f"      {line}" for line in log.read_text(errors="replace").splitlines()[-8:])
                raise StartFailed(f"{keeper.piece.name} does not start ({keeper.reason or 'no answer'}):\n{end}")

    async def _migrate(self) -> None:
        """Bring the schema up to date; skipped when neither the migrations nor the embedded cluster changed."""
        migrations = [*self.layout.repository.glob("apps/*/migrations/*.py"), self.layout.repository / "uv.lock"]
        cluster = self.plan.postgres.data / "PG_VERSION" if self.plan.postgres else None
        made = str(cluster.stat().st_mtime_ns) if cluster else ""
        digest, stamp = digest_of(migrations, made), self.layout.run / "migrated"
        if cluster and stamp.is_file() and stamp.read_text() == digest:
            return
        step = StepLine("migrations")
        await self._manage("migrate", "--no-input", "--skip-checks")
        stamp.write_text(digest)
        step.end("ok", "green")

    async def _manage(self, command: str, *options: str) -> None:
        """Run a management command to its end. Raises StartFailed with the end of its output."""
        process = await asyncio.create_subprocess_exec(
            *(str(self.layout.python), "manage.py", command, *options),
            cwd=self.layout.repository,
            env=pieces.environment(self.plan),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        for line in output.splitlines():
            self.hub.line(command, "grey", line)
        if process.returncode:
            end = output.decode(errors="replace").strip().splitlines()[-8:]
            raise StartFailed(f"manage.py {command} failed:\n" + "\n".join(f"      {line}" for line in end))

    async def _stop_all(self) -> None:
        self.state = "stopping"
        self._publish()
        say()
        for names in pieces.STOP_ORDER:
            group = [self.keepers[name] for name in names if name in self.keepers]
            if group:
                say(f"  stopping {', '.join(keeper.piece.name for keeper in group)}")
                await self._stop_group(group)
        left = await asyncio.to_thread(end_all, marked(self.layout.mark), 3)
        if left:
            say(f"  {len(left)} processes had to be killed")
        self.state = "stopped"
        self._publish()
        self.hub.close()
        say("  Parley has stopped.")

    async def _stop_group(self, group: Sequence[Keeper]) -> None:
        stops = [asyncio.create_task(keeper.stop(hurry=self.hurry.is_set())) for keeper in group]
        hurried = asyncio.create_task(self.hurry.wait())
        pending = set(stops)
        while pending and not hurried.done():
            done, _ = await asyncio.wait({*pending, hurried}, return_when=asyncio.FIRST_COMPLETED)
            pending -= done
        if pending:
            say(paint("  in a hurry: killing what is left", "yellow"))
            await asyncio.gather(*(keeper.stop(hurry=True) for keeper in group))
        hurried.cancel()
        await asyncio.gather(*stops)

    def _publish(self) -> None:
        """Write `run/status.json`, whole or not at all."""
        me = identify(os.getpid())
        rows = [
            {
                "name": keeper.piece.name,
                "state": keeper.state,
                "pid": keeper.identity.pid if keeper.identity else None,
                "started": keeper.identity.started if keeper.identity else "",
                "restarts": keeper.restarts,
                "since": keeper.since,
                "address": keeper.piece.address,
                "reason": keeper.reason,
            }
            for keeper in self.keepers.values()
        ]
        text = json.dumps(
            {"state": self.state, "pid": me.pid, "started": me.started, "url": self.plan.url, "pieces": rows}, indent=1
        )
        draft = self.layout.status_file.with_suffix(".new")
        draft.write_text(text)
        draft.replace(self.layout.status_file)


@contextlib.contextmanager
def only_one(layout: Layout) -> Iterator[None]:
    """Hold the state folder's lock, or raise StartFailed."""
    with (layout.run / "lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StartFailed(
                "Parley already runs from this folder: `make status` tells, `make down` stops it."
            ) from error
        yield


def end_leftovers(layout: Layout, tell: Callable[[str], None] = say) -> None:
    """End processes of a supervisor that was killed."""
    leftovers = marked(layout.mark)
    if leftovers:
        tell(f"  ending {len(leftovers)} processes left by an earlier run")
        end_all(leftovers)


def need_port(plan: Plan) -> None:
    if is_free(plan.port, plan.host):
        return
    who = holder(plan.port)
    raise StartFailed(
        f"Port {plan.port} is taken{f' by {who}' if who else ''}.\nStop that, or choose another: "
        f"PORT={plan.port + 1} make up"
    )


def serve(layout: Layout, *, quiet: bool = False, with_s3: bool = False, with_engine: bool = True) -> int:
    """Run Parley in this process until it is told to stop. Returns the exit status."""
    layout.prepare()
    try:
        with only_one(layout):
            end_leftovers(layout)
            secrets = secret_store.load(layout.state / "secrets.json")
            plan = pieces.plan(layout, secrets, with_s3=with_s3, with_engine=with_engine)
            need_port(plan)
            asyncio.run(Supervisor(layout, plan, LogHub(layout.logs, muted=True), quiet).run())
    except (StartFailed, secret_store.BadSecret, *pieces.FAILURES) as failure:
        say(paint(f"\nParley did not start. {failure}", "red"))
        return 1
    return 0


def serve_detached(layout: Layout, options: Sequence[str], patience: float = 180) -> int:
    """Start `serve` in the background and wait until it answers. Returns the exit status."""
    layout.prepare()
    layout.status_file.unlink(missing_ok=True)
    log = layout.logs / "start.log"
    with log.open("wb") as output:
        child = subprocess.Popen(
            [layout.python, "-m", "infra.local", "serve", "--quiet", *options],
            cwd=layout.repository,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if child.poll() is not None:
            sys.stdout.write(log.read_text(errors="replace"))
            return child.returncode or 1
        found = read_status(layout.status_file)
        if found.get("state") == "ready" and found.get("pid") == child.pid:
            say(log.read_text(errors="replace").rstrip())
            say(f"It runs in the background; `make status` and `make down`; logs are in {layout.logs}.")
            say(f"Parley: {found['url']}")
            return 0
        time.sleep(0.1)
    say(paint(f"Parley does not answer after {patience:.0f} s; it is still being started. See {log}.", "yellow"))
    return 1


def read_status(path: Path) -> dict[str, object]:
    try:
        found: dict[str, object] = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found
