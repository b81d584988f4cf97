"""Parley as separate processes for fault, browser and load tests: webs, runners, workers, scripted replicas.

Each stack has a database and a Valkey of its own. Processes have names (`web-1`, `runner-2`, `replica-1`, `worker-1`,
`inference`, `valkey`) by which they are killed, paused and started again, on the same port.

    with Stack(services, runners=2) as stack:
        key = stack.api_key()
        stack.kill9("runner-1")
        stack.restart("runner-1")
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from infra.local import processes
from infra.local.layout import REPOSITORY, Layout
from infra.local.pieces import serves, web_command
from infra.local.ports import free_port
from infra.local.valkey import Valkey
from tests.services import PASSWORD, Services

MODEL = "fake"
START_PATIENCE = 60.0
# A real engine converts weights and warms up.
ENGINE_PATIENCE = 600.0
TICKS = os.sysconf("SC_CLK_TCK")


class StackFailed(Exception):
    """A process of the stack did not start or ended; the message has the end of its log."""


@dataclass
class Program:
    """One process: how to start it again and how to tell that it serves."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    ready: Callable[[Program], bool]
    patience: float = START_PATIENCE
    child: subprocess.Popen[bytes] | None = None
    # Where in the log the present process begins.
    begins_at: int = 0

    def start(self) -> None:
        self.begins_at = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.child = processes.spawn(self.command, env=self.environment, cwd=REPOSITORY, output=log.fileno())

    def wait(self) -> None:
        deadline = time.monotonic() + self.patience
        while not self.ready(self):
            if self.child is None or self.child.poll() is not None:
                raise StackFailed(f"{self.name} ended:\n{self.tail()}")
            if time.monotonic() > deadline:
                raise StackFailed(f"{self.name} does not serve after {self.patience:.0f} s:\n{self.tail()}")
            time.sleep(0.03)

    def tail(self, characters: int = 4000) -> str:
        return self.log.read_text(errors="replace")[-characters:] if self.log.exists() else ""

    def printed(self, words: str) -> bool:
        """Whether the present process has said something."""
        with self.log.open("rb") as log:
            log.seek(self.begins_at)
            return words.encode() in log.read()


@dataclass
class Stack:
    """Processes that share a database, a Valkey and a state folder. Use as a context manager."""

    services: Services
    webs: int = 1
    runners: int = 1
    workers: int = 0
    replicas: int = 1
    # Arguments to the scripted replicas, such as ("--itl", "10").
    replica_options: Sequence[str] = ()
    # Answers that the apps give one replica at once; None leaves their default.
    slots: int | None = None
    # True: the real engine under its supervisor instead of scripted replicas.
    engine: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    settings: str = "apps.config.settings.test"
    programs: dict[str, Program] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = f"stack_{secrets.token_hex(4)}"
        self.folder = self.services.folder / self.name
        self.folder.mkdir()
        self.valkey = Valkey(self.folder / "valkey", free_port(), PASSWORD)
        self.ports: dict[str, int] = {}
        self._valkey_child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Stack:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    # What the stack is made of

    def start(self) -> None:
        """Start everything and wait until it serves."""
        try:
            assert self.services.postgres.answers()
            self.services.new_database(self.name)
            self._valkey_child = self.services.start_valkey(self.valkey)
            first = [self._replica(number) for number in self._numbers(self.replicas if not self.engine else 0)]
            self._begin(first)
            rest = [self._web(number) for number in self._numbers(self.webs)]
            rest += [self._runner(number) for number in self._numbers(self.runners)]
            rest += [self._worker(number) for number in self._numbers(self.workers)]
            rest += [self._inference()] if self.engine else []
            self._begin(rest)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        for program in self.programs.values():
            if program.child is not None and program.child.poll() is None:
                program.child.send_signal(signal.SIGTERM)
        for program in self.programs.values():
            if program.child is not None:
                # A stopped process would not see the signal.
                processes.signal_group(program.child.pid, signal.SIGCONT)
                processes.end(program.child, patience=10)
        if self._valkey_child is not None:
            processes.end(self._valkey_child)
        self.services.drop_database(self.name)
        shutil.rmtree(self.folder, ignore_errors=True)

    def variables(self) -> dict[str, str]:
        """The environment of every process of the stack."""
        state = self.folder / "state"
        if not state.exists():
            state.mkdir()
            # Converted weights are worth keeping between sessions.
            weights = Layout(REPOSITORY, REPOSITORY / ".parley").state / "weights"
            weights.mkdir(parents=True, exist_ok=True)
            (state / "weights").symlink_to(weights)
        room = f"?slots={self.slots}" if self.slots else ""
        replicas = ",".join(f"{MODEL}={self.replica_url(n)}{room}" for n in self._numbers(self.replicas))
        own = {
            "DATABASE_URL": self.services.database_url(self.name),
            "REDIS_URL": self.valkey.url(),
            "PARLEY_STATE_DIR": str(state),
            "DJANGO_SETTINGS_MODULE": self.settings,
            "PARLEY_REPLICA_URLS": "" if self.engine else replicas,
            "PARLEY_VLLM_PYTHON": str(Layout(REPOSITORY, state).engine_python),
            "PYTHONUNBUFFERED": "1",
        }
        return {**os.environ, **self.services.environment(), **own, **self.environment}

    def url(self, number: int = 1) -> str:
        return f"http://127.0.0.1:{self.ports[f'web-{number}']}"

    def replica_url(self, number: int = 1) -> str:
        return f"http://127.0.0.1:{self._port(f'replica-{number}')}"

    def manage(self, *arguments: str) -> str:
        """Run a management command against the stack; returns what it prints to stdout."""
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(
            command, cwd=REPOSITORY, env=self.variables(), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise StackFailed(f"manage.py {arguments[0]} failed:\n{done.stderr[-4000:]}")
        return done.stdout

    def api_key(self, email: str = "operator@example.org", password: str = "a-fine-long-passphrase-7") -> str:
        """Make an account if there is none with this address; returns a new key for it."""
        printed = self.manage("bootstrap", "--email", email, "--password", password, "--api-key")
        return printed.strip().splitlines()[-1]

    def launch(
        self, name: str, arguments: Sequence[str], ready: Callable[[Program], bool], **environment: str
    ) -> Program:
        """Start one more Python process under a name of its own, and wait until it serves."""
        program = self._program(name, arguments, ready)
        program.environment = {**program.environment, **environment}
        self._begin([program])
        return program

    def pid(self, name: str) -> int:
        if name == "valkey":
            assert self._valkey_child is not None
            return self._valkey_child.pid
        return self._child(name).pid

    # Doing things to processes

    def kill9(self, name: str) -> None:
        """End a process and its children at once, as a crash or the kernel would."""
        if name == "valkey":
            assert self._valkey_child is not None
            self._valkey_child.kill()
            self._valkey_child.wait()
            return
        child = self._child(name)
        processes.signal_group(child.pid, signal.SIGKILL)
        child.wait()

    def terminate(self, name: str, patience: float = 20) -> int:
        """Ask a process to end; returns its exit status."""
        return processes.end(self._child(name), patience=patience)

    def pause(self, name: str) -> None:
        """Freeze a process: it is alive and holds its connections, but does nothing."""
        processes.signal_group(self._child(name).pid, signal.SIGSTOP)

    def resume(self, name: str) -> None:
        processes.signal_group(self._child(name).pid, signal.SIGCONT)

    def restart(self, name: str, *, wait: bool = True, empty: bool = False) -> None:
        """Start a process again where it was, ending it first if it still runs. `empty`: Valkey forgets all."""
        if name == "valkey":
            if self._valkey_child is not None and self._valkey_child.poll() is None:
                self.kill9(name)
            if empty:
                shutil.rmtree(self.valkey.folder)
            self._valkey_child = self.services.start_valkey(self.valkey)
            return
        program = self.programs[name]
        if program.child is not None and program.child.poll() is None:
            self.terminate(name)
        program.start()
        if wait:
            program.wait()

    def alive(self, name: str) -> bool:
        return self._child(name).poll() is None

    def log(self, name: str) -> str:
        """All that a process printed so far, over its restarts."""
        return self.programs[name].tail(1 << 30)

    def cpu_seconds(self, name: str) -> float:
        """CPU time that a process used so far; its live children do not count."""
        pid = self._valkey_child.pid if name == "valkey" and self._valkey_child else self._child(name).pid
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def resident_kib(self, name: str) -> int:
        """Memory that a process alone would free by ending, in KiB."""
        rollup = Path(f"/proc/{self._child(name).pid}/smaps_rollup").read_text()
        return sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Private_"))

    def control_replica(self, number: int = 1, **order: object) -> None:
        """Tell a scripted replica to misbehave, e.g. `fault="die", at=5, times=1`."""
        request = urllib.request.Request(
            f"{self.replica_url(number)}/control",
            data=json.dumps(order).encode(),
            headers={"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=5) as answer:
            assert answer.status == 200

    # How each is started

    def _begin(self, programs: Sequence[Program]) -> None:
        for program in programs:
            self.programs[program.name] = program
            program.start()
        for program in programs:
            program.wait()

    def _program(
        self, name: str, arguments: Sequence[str], ready: Callable[[Program], bool], *, patience: float = START_PATIENCE
    ) -> Program:
        command = (sys.executable, *arguments)
        return Program(name, command, self.variables(), self.folder / f"{name}.log", ready, patience)

    def _web(self, number: int) -> Program:
        port = self._port(f"web-{number}")
        probe = serves("127.0.0.1", port)
        return self._program(f"web-{number}", web_command("127.0.0.1", port), lambda _: probe())

    def _runner(self, number: int) -> Program:
        return self._program(f"runner-{number}", ("manage.py", "runner"), lambda me: me.printed("runner.ready"))

    def _worker(self, number: int) -> Program:
        name = f"worker-{number}"
        celery = ("-m", "celery", "-A", "apps.config.celery:app", "worker", "--without-gossip", "--without-mingle")
        queues = ("-Q", "ingest,default,embed,ocr", "-c", "2", "-n", f"{name}@%h", "--loglevel", "INFO")
        return self._program(name, (*celery, *queues), lambda me: me.printed(" ready."))

    def _replica(self, number: int) -> Program:
        port = self._port(f"replica-{number}")
        arguments = ("-m", "inference.engines.fake_server", "--port", str(port), *self.replica_options)
        probe = _answers(f"http://127.0.0.1:{port}/health")
        return self._program(f"replica-{number}", arguments, lambda _: probe())

    def _inference(self) -> Program:
        command = ("-m", "inference.supervisor")
        return self._program("inference", command, self._a_model_is_ready, patience=ENGINE_PATIENCE)

    def _a_model_is_ready(self, _: Program) -> bool:
        import redis

        from inference.client import read_models

        time.sleep(0.3)
        client = redis.Redis.from_url(self.valkey.url())
        try:
            return any(model.state == "ready" for model in read_models(client))
        finally:
            client.close()

    def _port(self, name: str) -> int:
        return self.ports.setdefault(name, free_port())

    def _child(self, name: str) -> subprocess.Popen[bytes]:
        child = self.programs[name].child
        assert child is not None
        return child

    @staticmethod
    def _numbers(count: int) -> range:
        return range(1, count + 1)


def _answers(url: str) -> Callable[[], bool]:
    def probe() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    return probe
