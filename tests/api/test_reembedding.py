"""The model that makes vectors is exchanged while people go on asking: old vectors answer until new ones do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from django.db import connection

from apps.accounts.types import Actor
from apps.core.checkup import Level
from apps.files import checkup
from apps.files.indexing import embed_file, embed_some, embedder, nearest, pooled, versions
from apps.files.indexing.vectors import EmbedderAway
from apps.files.models import File, FileStage, Passage, StageName, StageState, VectorVersion
from apps.files.pipeline import leases, reembedding, sweep
from apps.files.public import search_passages
from apps.files.retrieval.fusion import Spread, level
from apps.files.retrieval.search import _asked, _Search
from inference.engines.fake_pooling import FakePooling
from inference.protocol import ReplicaState
from tests.factories.accounts import make_actor
from tests.factories.files import drain, hurry
from tests.factories.passages import make_document
from tests.factories.pooling import pooling_server, publish_pooler

pytestmark = pytest.mark.django_db(transaction=True)

TEXTS = (
    "# Zebras\nThe zebra is known by its stripes.",
    "# Penguins\nPenguins feed on fish.",
    "# Heating\nA heat pump warms a house with little energy.",
)
QUESTIONS = ("stripes of the zebra", "which fish do penguins feed on", "warms a house with energy")
OTHER = 576


@pytest.fixture
def actor() -> Actor:
    return make_actor()


@pytest.fixture
def pooling() -> Iterator[FakePooling]:
    """A replica whose model `e` makes vectors of another number of dimensions."""
    with pooling_server() as (url, pooling):
        pooling.dimensions = OTHER
        publish_pooler("e", url)
        yield pooling
        pooled.replicas().close()  # before the server, whose connections end with it
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX IF EXISTS {nearest.index_name(OTHER)}")


@pytest.fixture
def files(actor: Actor) -> list[File]:
    """Three files with vectors of the embedder in the process."""
    made = [make_document(actor, [text], name=f"{n}.pdf") for n, text in enumerate(TEXTS)]
    for file in made:
        embed_file(file.id)
    return made


def ask_all(actor: Actor, files: Sequence[File], mode: str = "hybrid") -> None:
    """Each question finds its passage first, and each passage is judged by meaning."""
    ids = [file.id for file in files]
    for number, question in enumerate(QUESTIONS):
        result = search_passages(actor, file_ids=ids, query=question)
        assert (result.hits[0].file_id, result.mode) == (ids[number], mode), question
        found, _ = _Search(actor, ids, _asked(actor, question, versions.served())).candidates()
        assert len(found) == len(files)
        assert all(candidate.cosine is not None for candidate in found), "by vectors, old or new"


def of_version(version: str) -> int:
    return Passage.objects.filter(embedding_version=version).count()


def test_questions_are_answered_at_every_point_of_the_change(
    actor: Actor, files: list[File], pooling: FakePooling, settings: Any
) -> None:
    assert sweep.sweep()["renewed"] == 0
    settings.EMBEDDING_MODEL = "e"
    ask_all(actor, files)
    assert sweep.sweep()["renewed"] == 3
    assert reembedding.renewals() == [reembedding.Renewal(embedder.VERSION, 3)]
    for done, file in enumerate(files):
        assert of_version("pooled:e") == done
        ask_all(actor, files)
        drain(file.id)
    ask_all(actor, files)
    assert of_version("pooled:e") == 3
    sweep.sweep()
    assert [one.version for one in versions.served()] == ["pooled:e"], "the old version is dropped"
    assert VectorVersion.objects.get(version=embedder.VERSION).retired_at is not None
    ask_all(actor, files)
    assert nearest.has_index(OTHER)


def test_the_change_back_is_a_change_like_any_other(
    actor: Actor, files: list[File], pooling: FakePooling, settings: Any
) -> None:
    settings.EMBEDDING_MODEL = "e"
    sweep.sweep()
    drain(files[0].id)
    settings.EMBEDDING_MODEL = ""
    ask_all(actor, files)
    assert sweep.sweep()["renewed"] == 1, "the others were never changed, and their stages have nothing to do"
    for file in files:
        drain(file.id)
    sweep.sweep()
    assert of_version(embedder.VERSION) == 3
    assert [one.version for one in versions.served()] == [embedder.VERSION]


def test_without_the_old_embedder_its_passages_are_found_by_keywords_and_that_is_said(
    actor: Actor, files: list[File], pooling: FakePooling, settings: Any
) -> None:
    settings.EMBEDDING_MODEL = "e"
    sweep.sweep()
    for file in files:
        drain(file.id)
    settings.EMBEDDING_MODEL = ""
    publish_pooler("e", "http://127.0.0.1:9", state=ReplicaState.GONE)
    pooled.replicas().close()
    sweep.sweep()
    ids = [file.id for file in files]
    assert search_passages(actor, file_ids=ids, query="zebra").mode == "away", "no vector can be used at all"
    drain(files[0].id)
    result = search_passages(actor, file_ids=ids, query=QUESTIONS[1])
    assert (result.mode, result.hits[0].file_id) == ("mixed", ids[1])
    assert search_passages(actor, file_ids=ids[:1], query="zebra").mode == "hybrid", "nothing old in these"
    told = next(finding for finding in checkup.check() if finding.name == "vectors of pooled:e")
    assert told.level is Level.WARN
    assert "2 passages" in told.found


def test_while_the_new_embedder_is_away_nothing_changes(
    actor: Actor, files: list[File], pooling: FakePooling, settings: Any
) -> None:
    settings.EMBEDDING_MODEL = "e"
    pooling.fault = "fail"
    assert sweep.sweep()["renewed"] == 0
    assert not FileStage.objects.filter(name=StageName.EMBED, state=StageState.PENDING).exists()
    ids = [file.id for file in files]
    for number, question in enumerate(QUESTIONS):
        assert search_passages(actor, file_ids=ids, query=question).hits[0].file_id == ids[number]


def test_a_change_that_is_killed_goes_on_where_it_was(actor: Actor, pooling: FakePooling, settings: Any) -> None:
    file = make_document(actor, [f"Page {n} tells of zebra number {n}." for n in range(40)])
    embed_file(file.id)
    settings.EMBEDDING_MODEL = "e"
    sweep.sweep()
    held = leases.claim(file.id, StageName.EMBED)
    assert held is not None
    embed_some(file.id)  # and here the worker dies
    begun = of_version("pooled:e")
    assert 0 < begun < 40
    asked = len(pooling.asked)
    hurry(file.id)
    drain(file.id)
    assert of_version("pooled:e") == 40
    assert sum(pooling.asked[asked:]) == 40 - begun, "nothing was made twice"


def test_few_files_at_a_time_and_none_that_failed(
    actor: Actor, pooling: FakePooling, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembedding, "WINDOW", 2)
    made = [make_document(actor, ["zebra"], name=f"{n}.pdf") for n in range(5)]
    for file in made:
        embed_file(file.id)
    settings.EMBEDDING_MODEL = "e"
    assert reembedding.step() == 2
    assert reembedding.step() == 0, "both are still waited for"
    stuck, other = FileStage.objects.filter(name=StageName.EMBED).order_by("file_id")
    held = leases.claim(stuck.file_id, StageName.EMBED)
    assert held is not None
    with leases.fence(held):
        leases.finish(held, code="crashed")
    drain(other.file_id)
    assert reembedding.step() == 2
    for _ in range(3):
        for file in made:
            if file.id != stuck.file_id:
                drain(file.id)
        reembedding.step()
    assert of_version("pooled:e") == 4
    assert [one.version for one in versions.served()] == ["pooled:e", embedder.VERSION], "one has the old vector"
    assert search_passages(actor, file_ids=[stuck.file_id], query="zebra").mode == "hybrid"


def test_vectors_that_turn_up_late_are_served_and_replaced(
    actor: Actor, files: list[File], pooling: FakePooling, settings: Any
) -> None:
    """As those of a copy that was being made when the last old vector had gone."""
    settings.EMBEDDING_MODEL = "e"
    for _ in range(2):
        sweep.sweep()
        for file in files:
            drain(file.id)
    late = make_document(actor, [TEXTS[0]], name="late.pdf")
    settings.EMBEDDING_MODEL = ""
    embed_file(late.id)
    settings.EMBEDDING_MODEL = "e"
    assert sweep.sweep()["renewed"] == 1
    assert search_passages(actor, file_ids=[late.id], query=QUESTIONS[0]).mode == "hybrid"


def test_a_model_does_not_change_its_dimensions_under_one_name(actor: Actor, pooling: FakePooling) -> None:
    versions.hold("pooled:e", OTHER)
    versions.hold("pooled:e", OTHER)
    with pytest.raises(EmbedderAway, match="has given 576"):
        versions.hold("pooled:e", 384)
    with pytest.raises(EmbedderAway, match="at most"):
        versions.hold("pooled:f", 4_001)


def test_an_index_whose_making_was_broken_off_is_made_anew() -> None:
    assert nearest.ensure_index(7)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'files_passage_hnsw_7'::regclass")
    assert not nearest.has_index(7)
    assert nearest.ensure_index(7)
    assert nearest.has_index(7)
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX files_passage_hnsw_7")


def test_a_cosine_counts_by_how_far_it_stands_out() -> None:
    high, low = Spread(500, 0.75, 0.04), Spread(500, 0.10, 0.08)
    relevant, noise = level(0.60, low, high), level(0.83, high, high)
    assert relevant > noise, "0.83 is nothing special where all are near 0.75"
    assert noise == pytest.approx(0.83)
    assert level(0.5, Spread(1, 0.5, 0.0), high) == pytest.approx(high.mean, abs=0.4), "one passage says little"
    assert level(0.5, Spread(1, 0.5, 0.0), Spread(1, 0.5, 0.0)) == 0.5
