"""A run executed in the test's own process: what the replica is sent."""

from __future__ import annotations

import pytest

from apps.conversations.models import Run
from inference.engines import script
from inference.protocol import ChatMessage
from tests.factories.accounts import make_actor
from tests.factories.conversations import ask, make_conversation, make_exchange
from tests.factories.runner import execute

pytestmark = pytest.mark.django_db(transaction=True)
LIMIT = 1_024  # half of what a replica has that does not say its length


def test_a_long_conversation_fills_the_prompt_by_the_replicas_count() -> None:
    me = make_actor()
    conversation, parent = make_conversation(me), None
    for number in range(6):
        made = make_exchange(me, conversation, f"say: {number}", "x" * 965, parent_id=parent)
        parent = made.answer_id
    run_id = ask(me, conversation, "n:3", parent_id=parent).run_id
    run = execute(run_id)
    assert run.state == "completed"
    assert run.context is not None
    sent = [ChatMessage(message["role"], message["content"]) for message in run.context["messages"]]
    assert run.prompt_tokens == len(script.render(sent)), "what is kept is what was sent"
    assert LIMIT // 2 < run.prompt_tokens <= LIMIT


def test_a_conversation_goes_on_where_its_beginning_is_cached() -> None:
    me = make_actor()
    conversation = make_conversation(me)
    first = make_exchange(me, conversation)
    Run.objects.filter(id=first.run_id).update(replica="fake@b")
    urls = ("fake=fake://a", "fake=fake://b")
    run = execute(ask(me, conversation, "n:3", parent_id=first.answer_id).run_id, *urls)
    assert run.replica == "fake@b"
    assert run.decision is not None
    assert [reason["step"] for reason in run.decision["reasons"]] == ["rule", "affinity"]
    elsewhere = execute(ask(me, make_conversation(me), "n:3").run_id, *urls)
    assert elsewhere.replica == "fake@a"
    gone = execute(ask(me, conversation, "n:3", parent_id=run.answer_id).run_id, "fake=fake://a")
    assert gone.replica == "fake@a", "only while that replica is there"
