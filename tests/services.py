"""Private Postgres, Valkey and S3 servers for one test session, run by the code that runs them in production.

Addresses are fixed at import, before Django reads its settings; the servers start when a test first needs them.
A migrated database is kept as a template per state of the migrations, so that a session starts in a second.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from infra.local import postgres, processes, seaweed
from infra.local.layout import REPOSITORY
from infra.local.ports import free_port
from infra.local.postgres import Postgres
from infra.local.seaweed import Seaweed
from infra.local.valkey import Valkey

TEMPLATE = "parley_template"
DATABASE = "parley_test"
# Not a secret: these servers live for one session, on loopback. The template on disk must know its password.
PASSWORD = "only-for-the-servers-of-one-test-session"
CACHE = REPOSITORY / ".parley" / "cache"
PREFIX = "parley-tests-"
# Templates of other states of the migrations that are kept, for switching between branches.
TEMPLATES_KEPT = 3


def room() -> Path:
    """Memory-backed temporary space when there is enough of it."""
    memory = Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > (2 << 30):
        return memory
    return Path(tempfile.gettempdir())


def new_folder() -> Path:
    """A folder named after this process, so that leftovers of killed sessions can be told and removed."""
    for old in room().glob(f"{PREFIX}*"):
        pid, _, rest = old.name.removeprefix(PREFIX).partition("-")
        started = rest.partition("-")[0]
        if pid.isdigit() and processes.start_time(int(pid)) != started:
            shutil.rmtree(old, ignore_errors=True)
    me = processes.identify(os.getpid())
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{me.pid}-{me.started}-", dir=room()))
    folder.chmod(0o711)
    return folder


class Services:
    """The session's servers. Properties start what they name."""

    def __init__(self) -> None:
        self.folder = new_folder()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._postgres = Postgres(self.folder / "pg", free_port(), PASSWORD, throw_away=True)
        self._valkey = Valkey(self.folder / "valkey", free_port(), PASSWORD, durable=False)
        self._seaweed: Seaweed | None = None
        atexit.register(self.stop)

    def environment(self, database: str = DATABASE) -> dict[str, str]:
        """What a process needs to use these servers, whether they already run or not."""
        state = self.folder / "state"
        state.mkdir(exist_ok=True)
        return {
            "DATABASE_URL": self._postgres.url(database),
            "REDIS_URL": self._valkey.url(),
            "PARLEY_STATE_DIR": str(state),
            "PARLEY_SECRET_KEY": "test-key-" + hashlib.sha256(b"signing").hexdigest(),
            "PARLEY_CACHE_SALT_SECRET": "test-salt-" + hashlib.sha256(b"salting").hexdigest(),
            "DJANGO_SETTINGS_MODULE": "apps.config.settings.test",
        }

    @property
    def postgres(self) -> Postgres:
        """Running, with a migrated template and an empty test database made from it."""
        if "postgres" not in self._running:
            _copy_template(self._postgres)
            self._running["postgres"] = _start_postgres(self._postgres)
            self.new_database(DATABASE)
        return self._postgres

    def stop_postgres(self) -> None:
        """Shut the server down and throw everyone out, as an operator's restart would."""
        processes.end(self._running.pop("postgres"), signal.SIGINT, patience=15)

    def start_postgres(self) -> None:
        """Start it again with all that it had."""
        self._running["postgres"] = _start_postgres(self._postgres)

    @property
    def postgres_pid(self) -> int:
        return self._running["postgres"].pid

    @property
    def valkey(self) -> Valkey:
        if "valkey" not in self._running:
            self._running["valkey"] = self.start_valkey(self._valkey)
        return self._valkey

    @property
    def seaweed(self) -> Seaweed:
        """A real S3 server; takes about two seconds to start."""
        if self._seaweed is None:
            server = Seaweed(self.folder / "s3", seaweed.free_run_of_ports(free_port()), secrets.token_hex(20))
            server.prepare()
            with (self.folder / "s3.log").open("wb") as log:
                self._running["s3"] = processes.spawn(
                    server.command(), env={"PATH": os.environ["PATH"]}, cwd=server.folder, output=log.fileno()
                )
            server.wait(30)
            self._seaweed = server
        return self._seaweed

    def database_url(self, name: str) -> str:
        return self._postgres.url(name)

    def drop_database(self, name: str) -> None:
        """Remove a database, whoever is connected; nothing happens when the server never started."""
        if "postgres" in self._running:
            self._postgres.ask(f'drop database if exists "{name}" with (force)')

    def new_database(self, name: str) -> str:
        """A fresh, migrated database; returns its URL."""
        server = self._postgres
        server.ask(f'drop database if exists "{name}" with (force)')
        server.ask(f'create database "{name}" template {TEMPLATE} strategy file_copy')
        return server.url(name)

    def start_valkey(self, server: Valkey) -> subprocess.Popen[bytes]:
        """Start a Valkey of the caller's own; ended with the session if not before."""
        server.prepare()
        log = (server.folder / "valkey.log").open("ab")
        child = processes.spawn(server.command(), env={}, cwd=server.folder, output=log.fileno())
        log.close()
        server.wait(10)
        return child

    def stop(self) -> None:
        """End the servers and remove their files. Safe to call twice."""
        first = {"postgres": signal.SIGQUIT}
        for name, child in reversed(self._running.items()):
            processes.end(child, first.get(name, signal.SIGTERM), patience=5)
        self._running.clear()
        shutil.rmtree(self.folder, ignore_errors=True)


def _start_postgres(server: Postgres) -> subprocess.Popen[bytes]:
    with (server.folder / "log").open("ab") as log:
        child = processes.spawn(
            server.command(),
            env=server.environment(),
            cwd=server.folder,
            output=log.fileno(),
            account=server.account,
            on_parent_death=signal.SIGQUIT,
        )
    try:
        server.wait(20)
    except postgres.PostgresFailed as failure:
        raise RuntimeError(f"{failure}\n{(server.folder / 'log').read_text()[-2000:]}") from failure
    return child


def template_key(server: Postgres) -> str:
    """Changes when a migration, the server or this module does."""
    sha = hashlib.sha256(str(server.programs).encode())
    sources = [
        *REPOSITORY.glob("apps/*/migrations/*.py"),
        REPOSITORY / "uv.lock",
        Path(postgres.__file__),
        Path(__file__),
    ]
    for path in sorted(sources):
        sha.update(path.name.encode() + path.read_bytes())
    return sha.hexdigest()[:20]


def _copy_template(server: Postgres) -> None:
    kept = CACHE / f"template-{template_key(server)}"
    if not kept.exists():
        _build_template(server, kept)
    server.prepare_folder()
    # cp keeps the owner and shares blocks where the file system can.
    subprocess.run(["cp", "-a", "--reflink=auto", kept, server.data], check=True)
    os.utime(kept)


def _build_template(server: Postgres, kept: Path) -> None:
    """Make a cluster whose `TEMPLATE` database is migrated, stop it cleanly and keep its files."""
    CACHE.mkdir(parents=True, exist_ok=True)
    builder = Postgres(server.folder.with_name("pg-template"), free_port(), PASSWORD, throw_away=True)
    builder.prepare()
    with contextlib.ExitStack() as stack:
        child = _start_postgres(builder)
        stack.callback(processes.end, child, signal.SIGINT)
        builder.ensure_database(TEMPLATE)
        environment = {**os.environ, "DATABASE_URL": builder.url(TEMPLATE)}
        migrate = subprocess.run(
            [sys.executable, "manage.py", "migrate", "--no-input", "--skip-checks", "-v", "0"],
            cwd=REPOSITORY,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if migrate.returncode:
            raise RuntimeError(f"the migrations failed:\n{migrate.stderr[-4000:]}")
    draft = kept.with_name(f"{kept.name}.{os.getpid()}")
    subprocess.run(["cp", "-a", builder.data, draft], check=True)
    shutil.rmtree(builder.folder, ignore_errors=True)
    try:
        draft.rename(kept)
    except OSError:
        # Another session was faster; its copy is as good.
        shutil.rmtree(draft, ignore_errors=True)
    old = sorted(CACHE.glob("template-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in old[TEMPLATES_KEPT:]:
        shutil.rmtree(path, ignore_errors=True)


_session: Services | None = None


def session() -> Services:
    """This process's services, made (not started) on first use."""
    global _session
    if _session is None:
        _session = Services()
    return _session


def use() -> Iterator[Services]:
    """The session's services, stopped at the end. Backs the fixture of that name."""
    services = session()
    yield services
    services.stop()
