"""What Parley consists of on one machine, and with which settings each piece runs.

A piece whose address is given in the environment (DATABASE_URL, REDIS_URL, S3_ENDPOINT, PARLEY_REPLICA_URLS) is
somebody else's and is not started.
"""

from __future__ import annotations

import http.client
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from infra.local import postgres, seaweed, valkey
from infra.local.engine import kind_for_this_machine
from infra.local.keeper import Piece
from infra.local.layout import Layout
from infra.local.ports import PortBook
from infra.local.postgres import Postgres
from infra.local.processes import MARK
from infra.local.seaweed import Seaweed
from infra.local.secret_store import Secrets
from infra.local.valkey import Valkey

DEFAULT_PORT = 8000


class BadSetting(Exception):
    """A variable of the environment cannot be used; the message says which and why."""


FAILURES = (BadSetting, postgres.PostgresFailed, valkey.ValkeyFailed, seaweed.SeaweedFailed)
# Order of an orderly stop. What is in one row stops together.
STOP_ORDER = (("web",), ("runner", "worker", "ocr"), ("inference",), ("s3", "valkey"), ("postgres",))


@dataclass(frozen=True)
class Plan:
    """The servers to start and how the apps reach them; None where the environment names another."""

    layout: Layout
    host: str
    port: int
    postgres: Postgres | None
    valkey: Valkey | None
    seaweed: Seaweed | None
    addresses: Mapping[str, str]
    engine: bool

    @property
    def objects_elsewhere(self) -> bool:
        """Whether files are kept in an S3 API, ours or another's."""
        return bool(self.addresses.get("S3_ENDPOINT") or os.environ.get("S3_ENDPOINT"))

    @property
    def url(self) -> str:
        return os.environ.get("PARLEY_PUBLIC_URL") or f"http://{self.host}:{self.port}"


def plan(layout: Layout, secrets: Secrets, *, with_s3: bool = False, with_engine: bool = True) -> Plan:
    book = PortBook(layout.run / "ports.json")
    given = {name: os.environ[name] for name in ("DATABASE_URL", "REDIS_URL") if os.environ.get(name)}
    database = None
    if "DATABASE_URL" not in given:
        folder = postgres.place_for(layout.state, layout.system_data)
        database = Postgres(folder, book.port("postgres"), secrets.postgres_password)
        given["DATABASE_URL"] = database.url()
    cache = None
    if "REDIS_URL" not in given:
        cache = Valkey(layout.state / "valkey", book.port("valkey"), secrets.valkey_password)
        given["REDIS_URL"] = cache.url()
    objects = None
    if with_s3 and not os.environ.get("S3_ENDPOINT"):
        first = seaweed.free_run_of_ports(book.port("s3"))
        objects = Seaweed(layout.state / "s3", first, secrets.s3_secret_key)
        given.update(objects.environment())
    return Plan(
        layout=layout,
        host=os.environ.get("PARLEY_HOST") or "127.0.0.1",
        port=chosen_port(),
        postgres=database,
        valkey=cache,
        seaweed=objects,
        addresses=given,
        engine=with_engine and kind_for_this_machine() != "none",
    )


def chosen_port() -> int:
    text = os.environ.get("PORT") or str(DEFAULT_PORT)
    if not text.isdecimal() or not 1 <= int(text) <= 65_535:
        raise BadSetting(f"PORT is {text!r}; it must be a number between 1 and 65535.")
    return int(text)


def environment(plan: Plan) -> dict[str, str]:
    """What every process of ours gets, besides what the user has set."""
    layout = plan.layout
    return {
        **layout.inherited(),
        **plan.addresses,
        MARK: layout.mark,
        "PARLEY_STATE_DIR": str(layout.state),
        "PORT": str(plan.port),
        "PYTHONUNBUFFERED": "1",
        # Whoever starts everything as root has been told once; Celery need not say it for each worker.
        "PYTHONWARNINGS": "ignore:You're running the worker with superuser privileges",
        # A few threads that allocate much would otherwise keep an arena each.
        "MALLOC_ARENA_MAX": "2",
    }


def data_pieces(plan: Plan) -> list[Piece]:
    """The stores: started first, stopped last."""
    pieces = []
    mark = {MARK: plan.layout.mark}
    if plan.postgres:
        server = plan.postgres
        pieces.append(
            Piece(
                "postgres",
                tuple(server.command()),
                {**server.environment(), **mark},
                server.folder,
                probe=server.answers,
                colour="blue",
                stop_signal=postgres.STOP_SIGNAL,
                stop_within=30,
                account=server.account,
                address=f"127.0.0.1:{server.port}",
            )
        )
    if plan.valkey:
        cache = plan.valkey
        pieces.append(
            Piece(
                "valkey",
                tuple(cache.command()),
                mark,
                cache.folder,
                probe=cache.answers,
                colour="red",
                stop_signal=valkey.STOP_SIGNAL,
                address=f"127.0.0.1:{cache.port}",
            )
        )
    if plan.seaweed:
        objects = plan.seaweed
        pieces.append(
            Piece(
                "s3",
                tuple(objects.command()),
                {"PATH": os.environ.get("PATH", ""), **mark},
                objects.folder,
                probe=objects.answers,
                colour="grey",
                address=objects.endpoint,
            )
        )
    return pieces


def app_pieces(plan: Plan) -> list[Piece]:
    """Web, runner and workers. Workers give way to the model, and the model to web and runner."""
    python, repository, common = str(plan.layout.python), plan.layout.repository, environment(plan)

    def piece(name: str, colour: str, *command: str, words: bytes, nice: int, stop_within: float, **more: str) -> Piece:
        return Piece(
            name,
            (python, *command),
            {**common, **more},
            repository,
            ready_words=words,
            colour=colour,
            nice=nice,
            stop_within=stop_within,
        )

    def worker(name: str, queues: str, processes: int, *options: str, nice: int, **more: str) -> Piece:
        celery = ("-m", "celery", "--quiet", "-A", "apps.config.celery:app", "worker")
        plain = ("--without-gossip", "--without-mingle", "--loglevel", "INFO")
        own = ("-Q", queues, "-c", str(processes), "-n", f"{name}@%h", *options)
        return piece(name, "magenta", *celery, *plain, *own, words=b" ready.", nice=nice, stop_within=15, **more)

    web = Piece(
        "web",
        (python, *web_command(plan.host, plan.port)),
        common,
        repository,
        probe=serves(plan.host, plan.port),
        colour="green",
        stop_within=12,
        address=plan.url,
    )
    schedule = ("-B", "-s", str(plan.layout.run / "beat-schedule"))
    return [
        web,
        piece("runner", "cyan", "manage.py", "runner", words=b"runner.ready", nice=0, stop_within=25),
        worker("worker", "ingest,default,embed", 2, *schedule, nice=10),
        worker("ocr", "ocr", 1, nice=12, OMP_THREAD_LIMIT="1"),
    ]


def engine_pieces(plan: Plan) -> list[Piece]:
    if not plan.engine:
        return []
    common = {
        **environment(plan),
        "PARLEY_VLLM_PYTHON": str(plan.layout.engine_python),
        "PARLEY_VLLM": kind_for_this_machine(),
    }
    command = (str(plan.layout.python), "-m", "inference.supervisor")
    return [Piece("inference", command, common, plan.layout.repository, colour="yellow", nice=5, stop_within=40)]


def web_command(host: str, port: int) -> tuple[str, ...]:
    """Arguments to Python for the web process. Streams that stay open are cut after five seconds of a stop."""
    server = ("--loop", "uvloop", "--http", "httptools", "--no-access-log", "--no-server-header")
    bounds = ("--timeout-graceful-shutdown", "5", "--timeout-keep-alive", "30", "--backlog", "1024")
    return ("-m", "uvicorn", "apps.config.asgi:application", "--host", host, "--port", str(port), *server, *bounds)


def serves(host: str, port: int) -> Callable[[], bool]:
    """A probe: the health page answers 200."""
    reached = "127.0.0.1" if host in ("0.0.0.0", "") else host  # noqa: S104

    def probe() -> bool:
        connection = http.client.HTTPConnection(reached, port, timeout=3)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    return probe


def connections_text(plan: Plan) -> str:
    """The addresses in dotenv form."""
    named = {**plan.addresses, "PORT": str(plan.port), "PARLEY_PUBLIC_URL": plan.url}
    return "".join(f"{name}={value}\n" for name, value in named.items())


def prepare(plan: Plan) -> None:
    """Make the stores' folders and files, and end servers that were left on them."""
    for server in (plan.postgres, plan.valkey, plan.seaweed):
        if isinstance(server, Postgres):
            server.stop_leftover()
        if server is not None:
            server.prepare()
    path = Path(plan.layout.connections)
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(connections_text(plan))
