"""Long conversations: what was said long ago is in the prompt when it is asked about, and only on its own branch."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection

from apps.accounts.types import Actor
from apps.conversations.models import BranchSummary, Message, Run, TurnIndex, TurnPosting
from apps.conversations.services import conversations, older, posting
from apps.conversations.types import Memo
from apps.files.public import vector_of, vectors_of
from tests.factories.accounts import make_actor, make_colleague
from tests.factories.conversations import serve_model
from tests.factories.long import make_long, talk
from tests.factories.people import Person, shown
from tests.factories.runner import execute

pytestmark = pytest.mark.django_db(transaction=True)
FACT = "My sister's cat is called Bartholomew and it is afraid of the vacuum cleaner."
QUESTION = "What is the name of the cat of my sister, and what is it afraid of?"
OTHER = "What do you know of Bartholomew?"


def ask(actor: Actor, conversation: UUID, parent: UUID, text: str = QUESTION) -> Run:
    """Ask, and let a runner answer."""
    serve_model()
    question = posting.Question(conversation, uuid4(), text, parent, (), "auto")
    view = posting.post_message(actor, question, key=None).view
    return execute(view["run"]["id"], "fake=fake://one?n=4")


def prompt(run: Run) -> str:
    assert run.context is not None
    return "\n".join(message["content"] for message in run.context["messages"])


def history(run: Run) -> dict[str, Any]:
    assert run.context is not None
    view: dict[str, Any] = run.context["history"]
    return view


def find(actor: Actor, conversation: UUID, leaf: UUID, question: str = OTHER, **options: Any) -> list[str]:
    found = older.find_older(actor, conversation, leaf, question=question, vector=None, sent=(), **options)
    return [turn.text for turn in found.hits]


def test_what_was_said_at_the_beginning_is_there_two_hundred_turns_later() -> None:
    person = Person()
    conversation, ids = make_long(person.actor, talk(400, at3=FACT))
    run = ask(person.actor, conversation, ids[-1])
    assert run.state == "completed"
    assert FACT in prompt(run)
    told = shown(person.get(f"/api/runs/{run.id}/context"))["history"]
    assert told["total"] == 400
    assert 0 < told["sent"] < 200
    assert told["left_out"] == 400 - told["sent"]
    assert {"message_id": str(ids[2]), "number": 3, "role": "user"} in told["recalled"]


def test_it_is_not_there_where_nobody_asks_or_the_branch_does_not_hold_it() -> None:
    actor = make_actor()
    conversation, ids = make_long(actor, talk(200, at101=FACT))
    assert FACT in prompt(ask(actor, conversation, ids[-1]))
    assert FACT not in prompt(ask(actor, conversation, ids[-1], "How high is the Eiffel tower?"))
    _, others = make_long(actor, talk(200), conversation_id=conversation, after=ids[99], seq=1_000)
    run = ask(actor, conversation, others[-1])
    assert FACT not in prompt(run)
    assert history(run)["total"] == 300


def test_a_short_conversation_costs_nothing() -> None:
    actor = make_actor()
    conversation, ids = make_long(actor, [FACT, "Noted."])
    run = ask(actor, conversation, ids[-1])
    assert history(run)["left_out"] == 0
    assert not TurnIndex.objects.exists()


def test_nobody_elses_words_are_found() -> None:
    actor = make_actor()
    conversation, ids = make_long(actor, talk(20, at3=FACT))
    assert find(actor, conversation, ids[-1]) == [FACT]
    for other in (make_actor(), make_actor(make_colleague(actor))):
        assert find(other, conversation, ids[-1]) == []
        mine, own = make_long(other, talk(20))
        assert find(other, mine, own[-1]) == []
        assert find(other, mine, ids[-1]) == [], "a leaf of another conversation"
        assert older.latest_memo(other, conversation, ids[-1]) is None
        assert older.turns_after(other, conversation, ids[-1], after=0, upto=9, most=9) == ()
        assert older.unembedded(other, conversation) == []
    copy = Actor(actor.user_id, uuid4())
    assert find(copy, conversation, ids[-1]) == [], "in another organization"


def test_what_was_sent_is_not_found_again_and_unfinished_answers_are_not_known() -> None:
    actor = make_actor()
    conversation, ids = make_long(actor, talk(20, at3=FACT, at4="Bartholomew is a fine name."))
    assert len(find(actor, conversation, ids[-1])) == 2
    found = older.find_older(actor, conversation, ids[-1], question=OTHER, vector=None, sent=[ids[2]])
    assert [turn.number for turn in found.hits] == [4]
    _, more = make_long(actor, ["Bartholomew?", "Bartholomew is"], conversation_id=conversation, after=ids[-1], seq=50)
    Message.objects.filter(id=more[-1]).update(status="running")
    assert len(find(actor, conversation, more[-1])) == 3


def test_meaning_finds_what_has_other_words() -> None:
    actor = make_actor()
    said = "I am allergic to peanuts and must not eat them."
    conversation, ids = make_long(actor, talk(30, at5=said))
    older.index_turns(actor, conversation, ids[-1])
    while texts := older.unembedded(actor, conversation):
        vectors = vectors_of(actor, [text for _, text in texts])
        older.save_vectors(conversation, dict(zip([id for id, _ in texts], vectors, strict=True)))
    question = "Which nuts should be left out of a meal for me?"
    vector = vector_of(actor, question)
    found = older.find_older(actor, conversation, ids[-1], question=question, vector=vector, sent=())
    assert found.mode == "hybrid"
    assert found.hits[0].text == said


def test_indexing_is_bounded_and_repeatable() -> None:
    actor = make_actor()
    conversation, ids = make_long(actor, talk(50))
    assert older.index_turns(actor, conversation, ids[-1], most=30) == 30
    assert older.index_turns(actor, conversation, ids[-1], most=30) == 20
    assert older.index_turns(actor, conversation, ids[-1], most=30) == 0
    assert TurnIndex.objects.filter(conversation_id=conversation).count() == 50


# ---------------------------------------------------------------- the rolling summary


def test_a_summary_is_made_behind_the_answer_and_used_for_the_next() -> None:
    actor = make_actor()
    conversation, ids = make_long(actor, talk(120))
    first = ask(actor, conversation, ids[-1])
    assert history(first)["summary"] is None, "nobody waited for one"
    memos = list(BranchSummary.objects.order_by("turns"))
    assert memos
    assert len(memos) <= 3
    assert memos[-1].turns <= history(first)["left_out"]
    second = ask(actor, conversation, first.answer_id, "And now?")
    told = history(second)["summary"]
    assert (told["turns"], told["model"]) == (memos[-1].turns, "fake")
    assert memos[-1].text in prompt(second)
    assert second.context is not None
    assert memos[-1].text in second.context["messages"][0]["content"]
    assert Message.objects.filter(conversation_id=conversation).count() >= 120, "the turns themselves stay"


def test_an_edit_leaves_the_summary_of_what_was_before_it_only() -> None:
    actor = make_actor()
    conversation, ids = make_long(actor, talk(40))
    for place in (9, 29):
        older.save_memo(conversation, Memo(ids[place], place + 1, f"Summary of {place + 1}.", "m"))
    found = older.latest_memo(actor, conversation, ids[-1])
    assert found is not None
    assert found.turns == 30
    _, edited = make_long(actor, talk(10), conversation_id=conversation, after=ids[19], seq=100)
    found = older.latest_memo(actor, conversation, edited[-1])
    assert found is not None
    assert found.turns == 10
    _, early = make_long(actor, talk(4), conversation_id=conversation, after=ids[3], seq=200)
    assert older.latest_memo(actor, conversation, early[-1]) is None


# ---------------------------------------------------------------- deletion


def test_deleting_a_conversation_removes_what_was_made_of_it() -> None:
    actor = make_actor()
    conversation, ids = make_long(actor, talk(40, at3=FACT))
    kept, others = make_long(actor, talk(10))
    for each, messages in ((conversation, ids), (kept, others)):
        older.index_turns(actor, each, messages[-1])
        older.save_memo(each, Memo(messages[4], 5, "Summary.", "m"))
    conversations.delete_conversation(actor, id=conversation)
    for model in (TurnIndex, TurnPosting, BranchSummary):
        left = set(model._default_manager.values_list("conversation_id", flat=True))
        assert left == {kept}, model
    assert not older.save_memo(conversation, Memo(ids[5], 6, "Too late.", "m"))
    assert older.index_turns(actor, conversation, ids[-1]) == 0
    conversations.restore_conversation(actor, id=conversation)
    assert find(actor, conversation, ids[-1]) == [FACT], "made again when it is needed again"


def test_the_search_reads_its_own_conversation_by_indexes() -> None:
    actor = make_actor()
    for _ in range(3):
        mine, own = make_long(make_actor(), talk(200))
        older.index_turns(actor, mine, own[-1])
    conversation, ids = make_long(actor, talk(300))
    older.index_turns(actor, conversation, ids[-1])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE conversations_turnindex, conversations_turnposting, conversations_message")
    branch = older._Branch(actor, conversation, ids[-1])
    plan = branch.rows(f"EXPLAIN (FORMAT TEXT) {older._SCORES}", question="tomatoes", vector=None, version="-")
    walk = branch.rows(f"EXPLAIN (FORMAT TEXT) {older._WALK}")
    text = "\n".join(line for (line,) in (*plan, *walk))
    assert "Seq Scan on conversations_turnposting" not in text
    assert "Seq Scan on conversations_message" not in text
