"""The embedded servers as `make up` runs them: made once, reachable by their user, recovered after a crash."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from infra.local import postgres as postgres_module
from infra.local import processes
from infra.local.ports import free_port
from infra.local.postgres import Postgres, PostgresFailed
from infra.local.valkey import Valkey, ValkeyFailed

PASSWORD = "a-password-of-this-test-only-0123456789"
Start = Callable[[Postgres | Valkey], subprocess.Popen[bytes]]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users may pass through, which pytest's own are not."""
    made = Path(tempfile.mkdtemp(prefix="parley-stores-"))
    made.chmod(0o711)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    with ExitStack() as stack:

        def begin(server: Postgres | Valkey) -> subprocess.Popen[bytes]:
            server.prepare()
            log = stack.enter_context((folder / "log").open("ab"))
            mark = {"PATH": os.environ["PATH"]}
            account = server.account if isinstance(server, Postgres) else None
            child = processes.spawn(server.command(), env=mark, cwd=server.folder, output=log.fileno(), account=account)
            stack.callback(processes.end, child, signal.SIGINT)
            server.wait(30)
            return child

        yield begin


def test_postgres_keeps_its_data_over_a_crash_and_needs_its_password(folder: Path, start: Start) -> None:
    server = Postgres(folder / "pg", free_port(), PASSWORD)
    first = start(server)
    server.ensure_database()
    server.ensure_database()
    server.ask("create table kept (n int); insert into kept values (7)", "parley")
    with pytest.raises(PostgresFailed, match="password"):
        Postgres(folder / "pg", server.port, "another").ask("select 1")
    processes.signal_group(first.pid, signal.SIGKILL)
    first.wait()
    start(server)
    assert server.ask("select n from kept", "parley") == "7"
    assert (
        server.ask("select datlocprovider::text || datlocale from pg_database where datname = 'parley'") == "bC.UTF-8"
    )


def test_an_interrupted_first_start_is_made_again(folder: Path, start: Start) -> None:
    (folder / "pg" / "data.new").mkdir(parents=True)
    (folder / "pg" / "data.new" / "half").touch()
    server = Postgres(folder / "pg", free_port(), PASSWORD)
    start(server)
    assert server.answers()
    assert not (folder / "pg" / "password.new").exists()


def test_a_cluster_of_another_version_is_left_alone_with_a_word(folder: Path) -> None:
    server = Postgres(folder / "pg", free_port(), PASSWORD)
    server.data.mkdir(parents=True)
    (server.data / "PG_VERSION").write_text("17\n")
    with pytest.raises(PostgresFailed, match=r"made by Postgres 17.*DATABASE_URL"):
        server.prepare()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts servers as somebody else")
def test_root_runs_postgres_as_another_user_even_from_a_closed_folder(
    folder: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = folder / "closed"
    package = postgres_module.installed().parent
    shutil.copytree(package, closed / package.name)
    shutil.copytree(package.with_name(f"{package.name}.libs"), closed / f"{package.name}.libs")
    closed.chmod(0o700)
    monkeypatch.setattr(postgres_module, "installed", lambda: closed / package.name / "pginstall")
    server = Postgres(folder / "pg", free_port(), PASSWORD)
    child = start(server)
    assert folder / "pg" in server.programs.parents
    assert Path(f"/proc/{child.pid}").stat().st_uid != 0
    # The state folder decides where the data goes: a closed one is no place for another user's files.
    assert postgres_module.place_for(folder, Path("/elsewhere")) == folder / "pg"
    assert postgres_module.place_for(closed, Path("/elsewhere")) == Path("/elsewhere/pg")


def test_valkey_keeps_what_it_was_told_and_needs_its_password(folder: Path, start: Start) -> None:
    server = Valkey(folder / "valkey", free_port(), PASSWORD)
    first = start(server)
    server.call("SET", "kept", "7")
    with pytest.raises(ValkeyFailed):
        Valkey(folder / "valkey", server.port, "another").call("PING")
    assert processes.end(first) == 0
    start(server)
    assert server.call("STRLEN", "kept") == "1"
    assert (server.folder / "valkey.conf").stat().st_mode & 0o077 == 0
