"""Two workers at one page: the same as one."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from apps.files.indexing import index_page
from apps.files.models import Page, PageState, Passage, Posting
from tests.factories import documents
from tests.factories.accounts import make_actor
from tests.factories.passages import add_page, make_file

pytestmark = pytest.mark.django_db(transaction=True)


def test_workers_that_index_the_same_page_at_once() -> None:
    file = make_file(make_actor(), pages=1)
    page_id = add_page(file, 1, "\n".join(documents.sentences(60, seed=1)), state=PageState.PENDING)
    Page.objects.filter(id=page_id).update(state=PageState.READY)
    barrier = threading.Barrier(6)

    def work() -> int:
        try:
            barrier.wait(10)
            return index_page(page_id)
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as workers:
        counts = [done.result(60) for done in [workers.submit(work) for _ in range(6)]]
    assert len(set(counts)) == 1
    passages = list(Passage.objects.filter(file=file).order_by("ordinal"))
    assert [passage.ordinal for passage in passages] == list(range(len(passages)))
    assert {passage_id for (passage_id,) in Posting.objects.values_list("passage_id")} == {item.id for item in passages}
