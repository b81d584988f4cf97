"""Content that was uploaded before: copied for the same owner alone, and whole, whatever is deleted meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from django.db import connections

from apps.files import extraction, tasks
from apps.files.lifecycle.scanner import leftovers
from apps.files.models import File, Page, Passage, Posting
from apps.files.pipeline import copying
from tests.factories import documents
from tests.factories.accounts import make_colleague
from tests.factories.files import Caller, drain, hurry, object_store

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def base(tmp_path: Path) -> Iterator[str]:
    with object_store(tmp_path) as base:
        yield base


@pytest.fixture
def caller(base: str) -> Caller:
    return Caller(base)


def rows(file_id: str) -> list[int]:
    return [model.objects.filter(file_id=file_id).count() for model in (Page, Passage, Posting)]


def test_a_first_one_that_is_deleted_while_it_is_copied_waits_for_the_copy(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = documents.short_pdf(3)
    first = caller.ingest("a.pdf", body)["id"]
    whole = rows(first)
    second = caller.upload("b.pdf", body)["id"]
    tasks.verify(second)

    def delete() -> None:
        try:
            caller.delete(f"/{first}")
        finally:
            connections.close_all()

    deleting = threading.Thread(target=delete)
    copy = copying.copy_derived

    def copy_slowly(source: UUID, target: UUID) -> None:
        deleting.start()
        deleting.join(1.0)
        assert deleting.is_alive(), "the deletion waits for the copy"
        copy(source, target)

    monkeypatch.setattr(copying, "copy_derived", copy_slowly)
    tasks.parse(second)
    deleting.join(30)
    assert File.objects.get(id=first).state == "deleted"
    tasks.purge(first)
    drain(UUID(second))

    assert rows(second) == whole
    assert rows(first) == [0, 0, 0]
    assert caller.file(second)["state"] == "ready"
    assert leftovers(UUID(first)) == []


def test_when_the_first_one_has_gone_its_copy_is_copied(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    body = documents.short_pdf(2)
    first, second = (caller.ingest(name, body)["id"] for name in ("a.pdf", "b.pdf"))
    caller.delete(f"/{first}")
    tasks.purge(first)
    monkeypatch.setattr(extraction, "run", lambda *a, **k: pytest.fail("parsed again"))
    third = caller.ingest("c.pdf", body)["id"]
    assert File.objects.get(id=third).same_as_id == UUID(second)
    assert rows(third) == rows(second)


def test_copies_that_wait_for_one_that_goes_are_all_read(caller: Caller) -> None:
    body = documents.short_pdf(2)
    first, second, third = (caller.upload(f"{name}.pdf", body)["id"] for name in "abc")
    for file_id in (first, second, third):
        tasks.verify(file_id)
    caller.delete(f"/{first}")
    tasks.purge(first)
    for _ in range(3):
        for file_id in (second, third):
            hurry(UUID(file_id))
            drain(UUID(file_id))
    assert {caller.file(file_id)["state"] for file_id in (second, third)} == {"ready"}
    assert rows(second) == rows(third)


def test_a_colleagues_copy_is_read_for_them(caller: Caller, base: str) -> None:
    body = documents.short_pdf(1)
    caller.ingest("a.pdf", body)
    colleague = Caller(base, make_colleague(caller.actor))
    theirs = colleague.ingest("a.pdf", body)["id"]
    assert File.objects.get(id=theirs).same_as_id is None
    assert set(Passage.objects.filter(file_id=theirs).values_list("owner_id", flat=True)) == {colleague.actor.user_id}


def test_a_mark_that_names_anothers_file_copies_nothing(caller: Caller, base: str) -> None:
    """However it came to be there."""
    theirs = caller.ingest("a.pdf", documents.digital_pdf(1, seed=9))["id"]
    colleague = Caller(base, make_colleague(caller.actor))
    mine = colleague.upload("b.pdf", documents.short_pdf(1))["id"]
    tasks.verify(mine)
    File.objects.filter(id=mine).update(same_as_id=theirs)
    drain(UUID(mine))
    assert File.objects.get(id=mine).same_as_id is None
    texts = set(Passage.objects.filter(file_id=theirs).values_list("text", flat=True))
    assert not texts & set(Passage.objects.filter(file_id=mine).values_list("text", flat=True))
