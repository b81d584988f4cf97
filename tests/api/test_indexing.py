"""Passages and postings in the database: made once, replaced as a whole, gone with their page."""

from __future__ import annotations

import pytest
from django.db import connection
from django.utils import timezone

from apps.accounts.types import Actor
from apps.files.indexing import embed_file, index_page
from apps.files.indexing.embedder import VERSION
from apps.files.models import File, FileState, Page, PageState, Passage, Posting
from tests.factories import documents
from tests.factories.accounts import make_actor
from tests.factories.passages import add_page, elements, make_document, make_file

pytestmark = pytest.mark.django_db


@pytest.fixture
def actor() -> Actor:
    return make_actor()


def contents(file: File) -> list[tuple[object, ...]]:
    """All that is stored for a file, without what a new run makes anew."""
    passages = Passage.objects.filter(file=file).order_by("page_number", "ordinal")
    rows: list[tuple[object, ...]] = []
    for passage in passages:
        words = Posting.objects.filter(passage_id=passage.id).order_by("lexeme").values_list("lexeme", "tf")
        rows.append(
            (
                passage.page_number, passage.ordinal, passage.heading, passage.text, passage.boxes, passage.source,
                passage.token_count, passage.length, tuple(words),
            )
        )  # fmt: skip
    return rows


def test_a_page_becomes_passages_and_postings(actor: Actor) -> None:
    file = make_document(actor, ["# Energy costs\nCosts of energy rose, and rising costs were not foreseen."])
    passage = Passage.objects.get(file=file)
    assert passage.text == "Energy costs\n\nCosts of energy rose, and rising costs were not foreseen."
    assert passage.heading == "Energy costs"
    assert (passage.organization_id, passage.owner_id) == (actor.organization_id, actor.user_id)
    assert len(passage.boxes) == 2
    words = dict(Posting.objects.filter(passage_id=passage.id).values_list("lexeme", "tf"))
    assert words == {"cost": 3, "energi": 2, "rose": 1, "rise": 1, "foreseen": 1}
    assert passage.length == sum(words.values())
    assert set(Posting.objects.values_list("organization_id", "file_id")) == {(actor.organization_id, file.id)}


def test_indexing_again_changes_nothing(actor: Actor) -> None:
    file = make_document(actor, [" ".join(documents.sentences(60, seed=page)) for page in (1, 2)])
    before = contents(file)
    assert len(before) > 2
    for page in Page.objects.filter(file=file):
        index_page(page.id)
    assert contents(file) == before


def test_a_page_that_was_read_anew_is_replaced_as_a_whole(actor: Actor) -> None:
    file = make_document(actor, ["zebra", "giraffe"])
    page = Page.objects.get(file=file, number=1)
    Page.objects.filter(id=page.id).update(elements=elements("okapi"), source="ocr")
    index_page(page.id)
    assert sorted(Posting.objects.values_list("lexeme", flat=True)) == ["giraff", "okapi"]
    assert Passage.objects.get(page_number=1).source == "ocr"


@pytest.mark.parametrize(
    ("state", "confidence"), [(PageState.PENDING, None), (PageState.OCR, 0.6), (PageState.FAILED, None)]
)
def test_a_page_that_is_not_ready_has_none(actor: Actor, state: str, confidence: float | None) -> None:
    file = make_document(actor, ["zebra"])
    page = Page.objects.get(file=file)
    Page.objects.filter(id=page.id).update(state=state, confidence=confidence)
    assert index_page(page.id) == 0
    assert contents(file) == []
    assert not Posting.objects.exists()


def test_a_page_that_waits_for_recognition_has_those_of_its_own_text(actor: Actor) -> None:
    file = make_file(actor, pages=2)
    own, none = add_page(file, 1, "zebra", state=PageState.OCR), add_page(file, 2, "", state=PageState.OCR)
    assert (index_page(own), index_page(none)) == (1, 0)
    assert Page.objects.get(id=none).indexed_at is None
    assert Passage.objects.get().text == "zebra"


def test_a_page_of_a_deleted_file_has_none(actor: Actor) -> None:
    file = make_file(actor, pages=1)
    page_id = add_page(file, 1, "zebra", state=PageState.PENDING)
    Page.objects.filter(id=page_id).update(state=PageState.READY)
    File.objects.filter(id=file.id).update(state=FileState.DELETED, deleted_at=timezone.now())
    assert index_page(page_id) == 0


def test_a_page_that_is_not_there() -> None:
    assert index_page(make_actor().user_id) == 0


def test_strange_text_is_stored_and_found(actor: Actor) -> None:
    text = "quote ' \" \\ percent %s {braces} \u202eturned 日本語 " + "x" * 3_000 + " emoji \U0001f600 null"
    file = make_document(actor, [text])
    stored = "".join(Passage.objects.filter(file=file).order_by("ordinal").values_list("text", flat=True))
    assert "".join(stored.split()) == "".join(text.split())
    words = set(Posting.objects.values_list("lexeme", flat=True))
    assert {"quot", "percent", "brace", "日本", "本語"} <= words
    assert all(len(word) <= 64 for word in words)


def test_a_page_of_nothing_but_stop_words(actor: Actor) -> None:
    file = make_document(actor, ["it is what it is"])
    assert Passage.objects.get(file=file).length == 0
    assert not Posting.objects.exists()


def test_vectors_are_given_once_and_renewed_with_the_model(actor: Actor) -> None:
    file = make_document(actor, ["zebra", "giraffe", "okapi"])
    other = make_document(actor, ["lion"], name="other.pdf")
    assert embed_file(file.id) == 3
    assert embed_file(file.id) == 0
    assert set(Passage.objects.filter(file=file).values_list("embedding_version", flat=True)) == {VERSION}
    assert Passage.objects.get(file=other).embedding is None
    Passage.objects.filter(file=file, page_number=2).update(embedding_version="older")
    assert embed_file(file.id) == 1


def test_vectors_of_a_deleted_file_are_not_made(actor: Actor) -> None:
    file = make_document(actor, ["zebra"])
    File.objects.filter(id=file.id).update(state=FileState.DELETED, deleted_at=timezone.now())
    assert embed_file(file.id) == 0


def test_a_page_is_written_in_few_statements(actor: Actor, django_assert_max_num_queries: object) -> None:
    file = make_file(actor, pages=1)
    page_id = add_page(file, 1, "\n".join(documents.sentences(60, seed=5)), state=PageState.PENDING)
    Page.objects.filter(id=page_id).update(state=PageState.READY)
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as captured:
        assert index_page(page_id) > 1
    statements = [query["sql"] for query in captured if "SAVEPOINT" not in query["sql"]]
    assert len(statements) == 2
