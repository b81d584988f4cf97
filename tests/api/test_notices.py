"""What a reader is told besides the text stays with the answer: lost replicas, searches that were not complete."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import orjson
import pytest

from apps.conversations.eventlog import frame_data, log_key
from apps.conversations.models import Message
from apps.conversations.services import posting
from apps.core.ids import new_id
from apps.core.valkey import valkey
from apps.files.models import File, FileState, PageState
from tests.factories.conversations import ask, finish, make_conversation, serve_model
from tests.factories.passages import add_page, make_file
from tests.factories.people import Person, shown
from tests.factories.runner import execute

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = "/api/conversations"


@pytest.fixture
def me() -> Person:
    serve_model()
    return Person()


def answer_of(me: Person, conversation_id: UUID) -> Any:
    return shown(me.get(f"{ROOT}/{conversation_id}/messages"))["results"][1]


def done_of(run_id: UUID) -> Any:
    """The last event of a run's log."""
    entries: Any = valkey().xrevrange(log_key(run_id), count=1)
    frame, *_ = entries[0][1].values()
    return orjson.loads(frame_data(frame))


def test_a_lost_replica_and_an_incomplete_search_are_kept(me: Person) -> None:
    file = make_file(me.actor, pages=3, state=FileState.PROCESSING, name="long.pdf")
    add_page(file, 1, "The zebra has stripes.")
    add_page(file, 2, state=PageState.FAILED)
    conversation = make_conversation(me.actor)
    question = posting.Question(conversation, new_id(), "zebra? die:4 n:9", None, (file.id,), "auto")
    run_id = posting.post_message(me.actor, question).view["run"]["id"]
    run = execute(run_id, "fake=fake://a", "fake=fake://b")
    answer = answer_of(me, conversation)
    assert (answer["status"], run.completion_tokens) == ("completed", 9)
    notices = answer["notices"]
    unready = {"file_id": str(file.id), "file_name": "long.pdf", "pages_pending": [3], "pages_failed": [2]}
    unready |= {"state": "reading", "reason": ""}
    assert notices[:2] == [{"kind": "keyword_only"}, {"kind": "unready", "files": [unready]}]
    (lost,) = notices[2:]
    assert (lost["kind"], lost["attempt"]) == ("reconstructed", 1)
    assert 0 < lost["at"] < len(answer["text"])
    assert lost["replica"] == run.replica
    done = done_of(run_id)
    assert (done["type"], done["message"]["notices"]) == ("done", notices)


def test_a_locked_and_a_broken_file_are_told_to_the_reader_and_to_the_model(me: Person) -> None:
    locked = make_file(me.actor, state=FileState.NEEDS_PASSWORD, name="secret.pdf")
    broken = make_file(me.actor, state=FileState.FAILED, name="broken.pdf")
    File.objects.filter(id=broken.id).update(error_message="The file is damaged.")
    conversation = make_conversation(me.actor)
    question = posting.Question(conversation, new_id(), "zebra?", None, (locked.id, broken.id), "auto")
    run_id = posting.post_message(me.actor, question).view["run"]["id"]
    run = execute(run_id, "fake=fake://a")
    (notice,) = answer_of(me, conversation)["notices"]
    assert notice["kind"] == "unready", "and nothing of how nothing was searched"
    told = [(file["file_name"], file["state"], file["reason"]) for file in notice["files"]]
    assert told == [("secret.pdf", "needs_password", ""), ("broken.pdf", "failed", "The file is damaged.")]
    assert run.context is not None
    sent = run.context["messages"][-1]["content"]
    assert "(Not opened without its password: secret.pdf. Could not be read: broken.pdf (The file is damaged).)" in sent


def test_an_answer_without_incidents_has_none(me: Person) -> None:
    made = ask(me.actor, make_conversation(me.actor))
    assert answer_of(me, made.conversation_id)["notices"] == [], "none while it is waited for"
    finish(made.run_id)
    assert answer_of(me, made.conversation_id)["notices"] == []


def test_a_branch_takes_them_along(me: Person) -> None:
    made = ask(me.actor, make_conversation(me.actor))
    finish(made.run_id)
    notices = [{"kind": "keyword_only"}]
    Message.objects.filter(id=made.answer_id).update(notices=notices)
    path = f"{ROOT}/{made.conversation_id}"
    copy = shown(me.post(f"{path}/branch", {"message_id": str(made.answer_id)}), 201)
    assert answer_of(me, copy["id"])["notices"] == notices
