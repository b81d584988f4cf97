"""Files whose vectors and order come from pooling replicas: while those are well, away, wrong, or exchanged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone
from prometheus_client import REGISTRY

from apps.accounts.types import Actor
from apps.core.checkup import Finding, Level
from apps.files import checkup
from apps.files.indexing import embed_file, embedder, pooled
from apps.files.indexing.vectors import EmbedderAway
from apps.files.indexing.versions import hold
from apps.files.models import File, FileStage, Passage, StageName, StageState
from apps.files.pipeline import leases, sweep
from apps.files.public import asearch_passages, search_passages
from apps.files.types import SearchResult
from inference.engines.fake_pooling import FakePooling
from inference.protocol import Purpose, ReplicaState
from tests.factories.accounts import make_actor
from tests.factories.files import drain, hurry
from tests.factories.passages import make_document
from tests.factories.pooling import pooling_server, publish_pooler

pytestmark = pytest.mark.django_db(transaction=True)

ANIMALS = ["# Zebras\nThe zebra is known by its stripes.", "# Penguins\nPenguins feed on fish.", "# Energy\nHeating."]
NOBODY = "http://127.0.0.1:9"


@pytest.fixture
def actor() -> Actor:
    return make_actor()


@pytest.fixture
def server() -> Iterator[tuple[str, FakePooling]]:
    with pooling_server() as server:
        yield server
        pooled.replicas().close()  # before the server, whose connections end with it


@pytest.fixture
def pooling(server: tuple[str, FakePooling], settings: Any) -> FakePooling:
    """A replica that makes the vectors of this installation."""
    settings.EMBEDDING_MODEL = "e"
    publish_pooler("e", server[0])
    return server[1]


@pytest.fixture
def reranking(server: tuple[str, FakePooling], settings: Any) -> FakePooling:
    settings.RERANK_MODEL = "r"
    publish_pooler("r", server[0], Purpose.RERANK)
    return server[1]


def find(actor: Actor, file: File, query: str) -> SearchResult:
    return search_passages(actor, file_ids=[file.id], query=query)


def versions() -> set[str]:
    return set(Passage.objects.values_list("embedding_version", flat=True))


# Vectors


def test_vectors_are_made_and_searched_by_the_replica(actor: Actor, pooling: FakePooling) -> None:
    file = make_document(actor, ANIMALS)
    assert embed_file(file.id) == 3
    assert versions() == {"pooled:e"}
    result = find(actor, file, "which fish do penguins eat")
    assert (result.mode, result.hits[0].heading, result.reranked) == ("hybrid", "Penguins", False)
    assert pooling.asked == [3, 1]
    for lane in ("batch", "interactive"):
        labels = {"model": "e", "lane": lane, "outcome": "ok"}
        assert REGISTRY.get_sample_value("parley_pooling_requests_total", labels), "counted"


def test_async_code_finds_the_same(actor: Actor, pooling: FakePooling) -> None:
    file = make_document(actor, ANIMALS)
    embed_file(file.id)
    found = asyncio.run(asearch_passages(actor, file_ids=[file.id], query="stripes"))
    assert found == find(actor, file, "stripes")
    assert asyncio.run(asearch_passages(actor, file_ids=[], query="stripes")).hits == ()


@pytest.mark.parametrize("trouble", ["away", "too many numbers", "nan"])
def test_without_vectors_keywords_answer_and_the_file_waits_for_them(
    actor: Actor, pooling: FakePooling, trouble: str
) -> None:
    file = make_document(actor, ANIMALS)
    if trouble == "away":
        publish_pooler("e", NOBODY, state=ReplicaState.GONE)
    pooling.dimensions = 4_001 if trouble == "too many numbers" else 384
    pooling.fault = "nan" if trouble == "nan" else ""
    with pytest.raises(EmbedderAway):
        embed_file(file.id)
    leases.arm(file, StageName.EMBED)
    for _ in range(leases.MAX_FAILURES + 2):
        hurry(file.id)
        drain(file.id)
    stage = FileStage.objects.get(file=file, name=StageName.EMBED)
    assert (stage.state, stage.failures, stage.error_code) == (StageState.PENDING, 0, "")
    assert stage.due_at is not None
    assert stage.due_at > timezone.now()
    # Only what gives no vector for the question either is away.
    assert find(actor, file, "zebra").mode == ("keyword" if trouble == "too many numbers" else "away")
    assert find(actor, file, "zebra").hits[0].heading == "Zebras"
    assert versions() == {""}


def test_a_file_that_waited_gets_its_vectors_when_the_replica_is_back(
    actor: Actor, server: tuple[str, FakePooling], pooling: FakePooling
) -> None:
    file = make_document(actor, ANIMALS)
    publish_pooler("e", NOBODY, state=ReplicaState.GONE)
    leases.arm(file, StageName.EMBED)
    drain(file.id)
    publish_pooler("e", server[0])
    pooled.replicas().close()  # instead of a second until it has read the registry again
    hurry(file.id)
    drain(file.id)
    assert versions() == {"pooled:e"}
    assert FileStage.objects.get(file=file, name=StageName.EMBED).state == StageState.DONE
    assert find(actor, file, "zebra").mode == "hybrid"


def test_vectors_of_two_models_are_never_compared_and_all_are_made_anew(
    actor: Actor, pooling: FakePooling, settings: Any
) -> None:
    settings.EMBEDDING_MODEL = ""
    file = make_document(actor, ANIMALS)
    embed_file(file.id)
    assert sweep.sweep()["renewed"] == 0
    settings.EMBEDDING_MODEL = "e"
    assert find(actor, file, "zebra").mode == "hybrid", "by the old vectors"
    assert sweep.sweep()["renewed"] == 1
    assert sweep.sweep()["renewed"] == 0, "is at it"
    drain(file.id)
    assert versions() == {"pooled:e"}
    assert find(actor, file, "zebra").mode == "hybrid"
    settings.EMBEDDING_MODEL = ""
    assert sweep.sweep()["renewed"] == 1
    drain(file.id)
    assert versions() == {embedder.VERSION}


# Reranking


def test_the_best_are_judged_once_more(actor: Actor, reranking: FakePooling) -> None:
    file = make_document(actor, ["zebra " * 9, "stripes on a zebra of Africa, told at length " + "and more " * 40])
    assert find(actor, file, "zebra stripes of Africa").reranked
    result = find(actor, file, "zebra stripes of Africa")
    assert [hit.score for hit in result.hits] == [1.0, 0.25]
    assert result.hits[0].text.startswith("stripes")
    assert result.mode == "keyword", "no vectors were made"


@pytest.mark.parametrize("trouble", ["away", "slow", "nan", "wrong_count"])
def test_the_order_of_the_search_stands_where_nobody_judges(
    actor: Actor, reranking: FakePooling, settings: Any, trouble: str
) -> None:
    file = make_document(actor, [f"zebra {'and more ' * n}" for n in range(5)])
    if trouble == "away":
        publish_pooler("r", NOBODY, Purpose.RERANK, state=ReplicaState.GONE)
    elif trouble == "nan":
        reranking.fault = "nan"
    elif trouble == "slow":
        reranking.delay_s = 30
    else:
        reranking.fault = "wrong_count"
    result = find(actor, file, "zebra")
    assert not result.reranked
    settings.RERANK_MODEL = ""
    assert find(actor, file, "zebra") == result


# Doctor


def finding(name: str) -> Finding:
    (found,) = [finding for finding in checkup.check() if finding.name == name]
    return found


def test_doctor_tells_what_makes_vectors_and_what_cannot(pooling: FakePooling, reranking: FakePooling) -> None:
    assert (finding("embeddings").level, finding("embeddings").found) == (Level.OK, "pooled:e")
    assert (finding("reranking").level, finding("reranking").found) == (Level.OK, "r")
    hold("pooled:e", 384)
    pooling.dimensions = 576
    refused = finding("embeddings")
    assert refused.level is Level.WARN
    assert "e gives 576 numbers a text and has given 384" in refused.found
    assert "docs/pooling.md" in refused.advice
    pooling.fault = "fail"
    assert finding("reranking").level is Level.WARN


def test_doctor_tells_of_models_that_nothing_uses(server: tuple[str, FakePooling]) -> None:
    publish_pooler("e", server[0])
    idle = finding("model e")
    assert (idle.level, idle.advice) == (Level.WARN, "Set PARLEY_EMBEDDING_MODEL=e")
