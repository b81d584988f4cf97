"""Questions about whole files, asked of the database and of a runner: what is given, and what is said of it."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from apps.accounts.types import Actor
from apps.conversations.models import Message, Run
from apps.conversations.services import posting
from apps.files.public import asearch_passages, search_passages
from apps.files.retrieval import survey
from apps.files.types import SearchResult
from tests.factories.accounts import make_actor
from tests.factories.conversations import make_conversation, serve_model
from tests.factories.passages import make_document
from tests.factories.people import Person, shown
from tests.factories.runner import execute
from tests.factories.summaries import make_summary

pytestmark = pytest.mark.django_db(transaction=True)
FILLER = "The survey of the valley was written down by hand and kept in the archive for many years. " * 6


@pytest.fixture
def actor() -> Actor:
    return make_actor()


def valley(actor: Actor, pages: int = 20, *, name: str = "valley.pdf") -> Any:
    texts = [
        f"# Chapter {(n - 1) // 5 + 1}\n{n}. {FILLER}{'A deadline is named. ' * (n % 7 == 0)}"
        for n in range(1, pages + 1)
    ]
    return make_document(actor, texts, name=name)


def found(actor: Actor, query: str, *files: Any, most: int = 48) -> SearchResult:
    return search_passages(actor, file_ids=[file.id for file in files], query=query, limit=6, survey_limit=most)


def test_an_overview_is_given_all_of_a_short_file(actor: Actor) -> None:
    result = found(actor, "Summarize the document", valley(actor))
    assert result.survey is not None
    assert [hit.page for hit in result.hits] == list(range(1, 21))
    assert [line.title for line in result.survey.outline] == [f"Chapter {n}" for n in range(1, 5)]


def test_an_overview_of_a_long_file_begins_each_of_its_sections(actor: Actor) -> None:
    result = found(actor, "What is this document about?", valley(actor, 60), most=20)
    assert len(result.hits) == 20
    assert {hit.page for hit in result.hits} >= {1, 6, 11, 56}


def test_cached_summaries_are_given_with_the_pages_they_are_of(actor: Actor) -> None:
    file = valley(actor, 8)
    make_summary(file, "Chapter 1 is about a bridge. [p. 1]", "Chapter 2 is about a dam. [p. 2]")
    result = found(actor, "Summarize this report", file)
    assert result.survey is not None
    assert result.survey.way == "summary"
    assert [line.text for line in result.survey.outline] == [
        "Chapter 1 is about a bridge. [p. 1]",
        "Chapter 2 is about a dam. [p. 2]",
    ]
    assert result.survey.outline[1].pages == (2,)


def test_all_of_something_is_looked_for_on_every_page(actor: Actor) -> None:
    file = valley(actor, 60)
    result = found(actor, "List all deadlines in the document", file)
    assert result.survey is not None
    assert (result.survey.way, result.survey.words) == ("words", ("deadlines",))
    assert result.survey.files[0].found == tuple(range(7, 61, 7))
    assert [hit.page for hit in result.hits] == list(range(7, 61, 7))


def test_words_that_stand_nowhere_leave_the_usual_ranking_and_are_said_to(actor: Actor) -> None:
    result = found(actor, "How many times is the zebra mentioned?", valley(actor, 5))
    assert result.survey is not None
    assert result.survey.files[0].found == ()
    assert "on none of its 5 pages" in survey.survey_note(result.survey)


def test_two_files_are_compared_by_both(actor: Actor) -> None:
    first = valley(actor, 40)
    second = make_document(actor, [f"Page {n} of another valley." for n in range(4)], name="second.pdf")
    result = found(actor, "Compare the two documents", first, second, most=12)
    by_file = [hit.file_id for hit in result.hits]
    assert by_file.count(second.id) == 4
    assert by_file.count(first.id) == 8


def test_other_questions_are_ranked_as_ever(actor: Actor) -> None:
    file = valley(actor)
    assert found(actor, "When is the deadline?", file).survey is None
    assert found(actor, "Summarize page 3", file).survey is None
    assert found(actor, "Summarize page 3", file).hits[0].page == 3


def test_of_others_nothing_is_surveyed(actor: Actor) -> None:
    file = valley(actor, 5)
    make_summary(file, "A secret bridge.")
    for query in ("Summarize the document", "List all deadlines", "Compare the two documents"):
        result = found(make_actor(), query, file)
        assert (result.hits, result.survey) == ((), None)


def test_async_code_finds_the_same(actor: Actor) -> None:
    file = valley(actor, 9)
    query = "Summarize the document"
    again = asyncio.run(asearch_passages(actor, file_ids=[file.id], query=query, limit=6, survey_limit=48))
    assert again == found(actor, query, file)


def test_a_run_says_how_much_of_the_file_it_was_given() -> None:
    person = Person()
    file = valley(person.actor, 60)
    serve_model()
    conversation = make_conversation(person.actor)
    question = posting.Question(conversation, uuid4(), "Summarize the document", None, (file.id,), "auto")
    view = posting.post_message(person.actor, question, key=None).view
    run = execute(view["run"]["id"], "fake=fake://one?n=4")
    assert run.state == "completed"
    context = shown(person.get(f"/api/runs/{run.id}/context"))
    (told,) = context["survey"]["files"]
    assert 0 < len(told["pages"]) < told["page_count"] == 60
    sent = context["messages"][-1]["content"]
    assert f"the text of {len(told['pages'])} of 60 pages" in sent
    assert "Outline: valley.pdf" in sent
    (notice,) = [n for n in Message.objects.get(run_id=run.id, role="assistant").notices if n["kind"] == "survey"]
    assert notice["survey"] == context["survey"]
    assert Run.objects.filter(id=run.id, context__survey=context["survey"]).exists()
