"""Workers killed while all vectors are made anew: questions are answered throughout, and in the end all are new."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from apps.files import tasks
from apps.files.indexing import embed_file, nearest, pooled, versions
from apps.files.models import Passage
from apps.files.pipeline import sweep
from apps.files.public import search_passages
from tests.factories.accounts import make_actor
from tests.factories.passages import make_document
from tests.factories.pooling import pooling_server, publish_pooler
from tests.factories.workers import Worker

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(240), pytest.mark.faults]
FILES, PAGES, KILLS, DIMENSIONS = 4, 34, 2, 576


@pytest.fixture
def publish(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[Callable[[], None]]:
    """A replica of the new model; to be called now and then, as its record expires."""
    monkeypatch.setattr(sweep, "PATIENCE", sweep.PATIENCE / 20)
    with pooling_server() as (url, pooling):
        pooling.dimensions, pooling.delay_s = DIMENSIONS, 0.2
        monkeypatch.setenv("PARLEY_EMBEDDING_MODEL", "e")
        yield partial(publish_pooler, "e", url)
        pooled.replicas().close()
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX IF EXISTS {nearest.index_name(DIMENSIONS)}")


def new() -> int:
    return Passage.objects.filter(embedding_version="pooled:e").count()


def test_questions_are_answered_while_workers_die(publish: Callable[[], None], settings: Any, tmp_path: Path) -> None:
    publish()
    actor = make_actor()
    files = [
        make_document(actor, [f"Subject {number * PAGES + page} is told here." for page in range(PAGES)])
        for number in range(FILES)
    ]
    for file in files:
        embed_file(file.id)
    settings.EMBEDDING_MODEL = "e"
    ids = [file.id for file in files]

    def answered() -> None:
        result = search_passages(actor, file_ids=ids, query="what of subject 77")
        assert (result.mode, result.hits[0].text) == ("hybrid", "Subject 77 is told here.")

    def until(count: int) -> None:
        deadline = time.monotonic() + 90
        while new() < count:
            assert time.monotonic() < deadline, f"{new()} of {count}"
            publish()
            tasks.sweep()
            answered()
            time.sleep(0.5)

    for round_ in range(1, KILLS + 1):
        with Worker(tmp_path / f"{round_}.log") as worker:
            before = new()
            until(before + 17)
            worker.kill9()
        assert new() > before
    assert new() < FILES * PAGES, "killed before the end each time"
    with Worker(tmp_path / "last.log"):
        until(FILES * PAGES)
    tasks.sweep()
    assert [one.version for one in versions.served()] == ["pooled:e"]
    answered()
