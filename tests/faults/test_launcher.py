"""`make up` and its kin as a person uses them: start, again, a taken port, Ctrl-C, kill -9. Without the engine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from infra.local.layout import REPOSITORY, Layout
from infra.local.ports import free_port
from infra.local.processes import end_all, marked
from tests.client import eventually
from tests.services import new_folder

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
FOREIGN = ("DATABASE_URL", "REDIS_URL", "S3_ENDPOINT", "DJANGO_SETTINGS_MODULE", "PORT")
"""Of the tests' own servers; and so is whatever begins with PARLEY."""


class Launcher:
    """The launcher's commands on a state folder of their own."""

    def __init__(self, folder: Path, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.layout = Layout(REPOSITORY, folder)
        own = {name: value for name, value in os.environ.items() if not name.startswith("PARLEY")}
        self.environment = {name: value for name, value in own.items() if name not in FOREIGN}
        self.environment |= {"PARLEY_STATE_DIR": str(folder), "PORT": str(port)}

    def start(self, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "infra.local", *command],
            cwd=REPOSITORY, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def call(self, *command: str) -> tuple[int, str]:
        """Exit status and output."""
        process = self.start(*command)
        output, _ = process.communicate(timeout=200)
        return process.returncode, output

    def up(self) -> tuple[int, str]:
        return self.call("up", "--detach", "--no-engine")

    def serves(self) -> bool:
        try:
            return httpx.get(f"{self.url}/healthz").status_code == 200
        except httpx.TransportError:
            return False

    def ask(self, sql: str) -> list[tuple[object, ...]]:
        """What the database answers."""
        lines = self.layout.connections.read_text().splitlines()
        url = dict(line.split("=", 1) for line in lines)["DATABASE_URL"]
        with psycopg.connect(url) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def left(self) -> list[str]:
        """Names of processes that belong to the folder."""
        return [str(process) for process in marked(self.layout.mark)]


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    made = Launcher(new_folder(), free_port())
    yield made
    made.call("down")
    end_all(marked(made.layout.mark))


def test_up_serves_once_and_keeps_what_it_has(launcher: Launcher) -> None:
    code, told = launcher.up()
    assert (code, launcher.serves()) == (0, True), told
    assert launcher.url in told
    code, told = launcher.up()
    assert (code, "already runs" in told) == (0, True), told

    neighbour = Launcher(new_folder(), int(launcher.environment["PORT"]))
    code, told = neighbour.up()
    assert (code, f"Port {neighbour.environment['PORT']} is taken" in told) == (1, True), told
    assert "PORT=" in told, "what to do"
    assert neighbour.left() == []

    launcher.ask("CREATE TABLE kept AS SELECT 'by a person' AS what")
    assert launcher.call("down")[0] == 0
    assert (launcher.serves(), launcher.left()) == (False, [])
    code, told = launcher.up()
    assert (code, launcher.serves()) == (0, True), told
    assert launcher.ask("SELECT what FROM kept") == [("by a person",)]
    assert launcher.call("status")[0] == 0


def test_one_signal_stops_everything_in_order(launcher: Launcher) -> None:
    process = launcher.start("serve", "--no-engine")
    eventually(launcher.serves, within=120)
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=100)
    assert process.returncode == 0
    web, stores = told.index("stopping web"), told.index("stopping postgres")
    assert web < stores < told.index("Parley has stopped"), told
    assert launcher.left() == []


def test_what_a_killed_launcher_left_is_ended_by_the_next(launcher: Launcher) -> None:
    process = launcher.start("serve", "--no-engine", "--quiet")
    eventually(launcher.serves, within=120)
    process.kill()
    # Its children hold the other end.
    process.stdout.close()  # type: ignore[union-attr]
    process.wait()
    orphans = launcher.left()
    assert orphans
    code, told = launcher.up()
    assert (code, launcher.serves()) == (0, True), told
    assert not set(orphans) & set(launcher.left())
