"""The whole product on the real engine, two replicas of the packaged model: what dies and what is cached stay unseen.

Float32, for in bfloat16 two tokens may tie, and then an answer that goes on elsewhere may rightly differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit
from uuid import UUID

import psutil
import pytest
import yaml
from redis import Redis

from apps.conversations.eventlog.log import log_key, unpack_ids
from inference.manifest import DEFAULT_MANIFEST
from inference.registry import read_records
from tests.client import Api, eventually
from tests.contracts.engine_subjects import engine_python
from tests.reader import Audit
from tests.services import Services
from tests.stack import ENGINE_PATIENCE, Stack

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(1500)]
STORY = "Write a long story about a sailor who repairs a lighthouse, and about the people of the village below it."
KILL_AT_TOKENS = 20


@pytest.fixture(scope="module")
def product(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    if not engine_python().exists():
        pytest.skip("the inference engine is not installed (make up installs it)")
    manifest = tmp_path_factory.mktemp("manifest") / "manifest.yaml"
    manifest.write_text(yaml.safe_dump({"models": [exact_model()]}))
    environment = {"PARLEY_MANIFEST": str(manifest)}
    with Stack(services, engine=True, settings="tests.e2e.settings", environment=environment) as stack:
        api = Api(stack.url(), stack.api_key())
        eventually(lambda: replicas_ready(api) == 2, within=ENGINE_PATIENCE, every=0.5)
        yield stack


def exact_model() -> dict[str, Any]:
    """The packaged model, such that the same question has one answer."""
    packaged: dict[str, Any] = yaml.safe_load(Path(DEFAULT_MANIFEST).read_text())["models"][0]
    exact = {"dtype": "float32", "sampling": {"temperature": 0.0, "top_p": 1.0}}
    return packaged | exact | {"context_length": 1024, "slots": 2, "replicas": 2}


def replicas_ready(api: Api) -> int:
    (model,) = api.get("/api/models")["results"]
    ready: int = model["replicas"]["ready"]
    return ready


@dataclass
class Telling:
    """One answer as its reader saw it, with the token ids in its event log, and where it runs."""

    run: str
    replica: str = ""
    audit: Audit = field(default_factory=Audit)
    ids: tuple[int, ...] = ()


def tell(stack: Stack, api: Api, text: str, then: Callable[[Telling], None] = lambda telling: None) -> Telling:
    """Ask in a new conversation and read to the end; `then` is called after each event."""
    telling = Telling(api.ask(api.new_conversation(), text)["run"]["id"])
    with Redis.from_url(stack.valkey.url()) as redis, api.events(telling.run, after=0, idle=120) as stream:
        for event in stream:
            telling.audit.take(event)
            telling.replica = event.data.get("replica", telling.replica)
            telling.ids = logged_ids(redis, telling.run)
            then(telling)
    assert telling.audit.is_clean
    return telling


def logged_ids(redis: Redis, run: str) -> tuple[int, ...]:
    """Every token that was shown, for the log outlives the answer by minutes."""
    entries = cast("list[tuple[bytes, dict[bytes, bytes]]]", redis.xrange(log_key(UUID(run))))
    return tuple(id for _, fields in entries for id in unpack_ids(fields[b"k"]))


def kill_replica(stack: Stack, id: str) -> None:
    """SIGKILL to the process that listens where the registry says that the replica is."""
    with Redis.from_url(stack.valkey.url()) as redis:
        (port,) = [urlsplit(r.replica.url).port for r in read_records(redis) if r.replica.id == id]
    (server,) = [p for p in psutil.Process(stack.pid("inference")).children(recursive=True) if listens(p, port)]
    server.kill()


def listens(process: psutil.Process, port: int | None) -> bool:
    return any(c.status == psutil.CONN_LISTEN and c.laddr.port == port for c in process.net_connections("tcp"))


def test_no_organization_finds_what_another_one_asked_in_the_cache(product: Stack) -> None:
    """Of three questions two meet at one replica: the second finds what the first left, but a stranger's does not."""
    text = "Here is a long text that both ask about. " * 20 + "What is it about?"
    for email in ("ada@example.org", "bo@example.org"):
        api, warm = Api(product.url(), product.api_key(email), timeout=60), set()
        for _ in range(3):
            run = api.run(tell(product, api, text).run)
            cached, replica = run["cached_tokens"], run["replica"]
            assert cached >= 96 if replica in warm else cached == 0, (email, replica, cached)
            warm.add(replica)


def test_an_answer_whose_replica_is_killed_reads_as_if_nothing_had_been(product: Stack) -> None:
    api = Api(product.url(), product.api_key(), timeout=60)
    undisturbed = tell(product, api, STORY)
    killed: dict[str, Any] = {}

    def kill_once(telling: Telling) -> None:
        if not killed and len(telling.ids) >= KILL_AT_TOKENS:
            killed.update(ids=telling.ids, text=telling.audit.reading.text, replica=telling.replica)
            kill_replica(product, telling.replica)

    disturbed = tell(product, api, STORY, kill_once)
    one, other = undisturbed.audit.reading, disturbed.audit.reading
    assert killed["replica"]
    assert len(killed["text"]) < len(other.text)
    assert (other.text, other.state) == (one.text, one.state)
    assert one.usage is not None
    assert other.usage is not None
    assert other.usage["completion_tokens"] == one.usage["completion_tokens"]
    # At the seam: what was shown stays, and the next token is the one that would have come.
    assert len(killed["ids"]) < len(disturbed.ids)
    assert disturbed.ids[: len(killed["ids"])] == killed["ids"]
    assert disturbed.ids == undisturbed.ids

    run = api.run(disturbed.run)
    (seam,) = run["reconstructed"]
    assert run["replica"] == seam["replica"] != killed["replica"]
    assert (run["attempt"], seam["attempt"]) == (1, 1)
    assert len(killed["text"]) <= seam["at"] < len(other.text)
    assert {"kind": "reconstructed", **seam} in other.notices
    assert [r["facts"]["replica"] for r in run["decision"]["reasons"] if r["step"] == "failover"] == [killed["replica"]]
