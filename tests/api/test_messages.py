"""Asking over HTTP: the tree of messages, retries, refusals, and what bad input is told."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.conversations.models import Conversation, Message, Run
from apps.conversations.services import runs
from apps.conversations.types import RunState
from apps.core.ids import new_id
from inference.protocol import ReplicaState
from tests.factories.accounts import make_actor
from tests.factories.admission import own_runs
from tests.factories.conversations import (
    ask,
    claim,
    finish,
    make_conversation,
    make_exchange,
    serve_model,
)
from tests.factories.people import Person, shown

pytestmark = pytest.mark.django_db
ROOT = "/api/conversations"


@pytest.fixture
def me() -> Person:
    serve_model()
    return Person()


@pytest.fixture
def path(me: Person) -> str:
    return f"{ROOT}/{make_conversation(me.actor)}/messages"


def question(text: str = "Why?", **more: Any) -> dict[str, Any]:
    return {"client_id": str(uuid4()), "text": text, **more}


def messages(me: Person, path: str) -> list[Any]:
    rows: list[Any] = shown(me.get(path))["results"]
    return rows


# ------------------------------------------------------------------ the tree


def test_a_question_its_answer_and_their_run_are_written_together(me: Person, path: str) -> None:
    posted = shown(me.post(path, question("Why is the sky blue?")), 201)
    asked, answer, run = posted["question"], posted["answer"], posted["run"]
    assert (asked["seq"], asked["role"], asked["text"], asked["status"]) == (
        1,
        "user",
        "Why is the sky blue?",
        "completed",
    )
    assert (answer["seq"], answer["role"], answer["text"], answer["status"]) == (2, "assistant", "", "queued")
    assert answer["parent_id"] == asked["id"]
    assert asked["run_id"] == answer["run_id"] == run["id"]
    assert (run["state"], run["attempt"], run["model_requested"], run["model"]) == ("queued", 0, "auto", "fake")
    assert messages(me, path) == [asked, answer]
    conversation = shown(me.get(path.removesuffix("/messages")))
    assert conversation["head_message_id"] == answer["id"]
    assert conversation["title"] == "Why is the sky blue?"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("  two\n\n words ", "two words"),
        ("word " * 30, "word word word word word word word word word word word…"),
        ("x" * 100, "x" * 59 + "…"),
        ("👩‍👩‍👧 and 東京", "👩‍👩‍👧 and 東京"),
    ],
)  # fmt: skip
def test_the_first_question_names_a_conversation(me: Person, path: str, text: str, title: str) -> None:
    me.post(path, question(text))
    assert shown(me.get(path.removesuffix("/messages")))["title"] == title


def test_a_name_given_by_a_person_stays(me: Person) -> None:
    id = make_conversation(me.actor, title="Mine")
    made = make_exchange(me.actor, id)
    runs.set_title(made.conversation_id, "The model's")
    assert shown(me.get(f"{ROOT}/{id}"))["title"] == "Mine"


def test_a_title_of_the_model_replaces_the_first_words_only(me: Person, path: str) -> None:
    id = UUID(path.split("/")[3])
    make_exchange(me.actor, id, "first words")
    runs.set_title(id, "By the model")
    assert shown(me.get(f"{ROOT}/{id}"))["title"] == "By the model"
    me.patch(f"{ROOT}/{id}", {"title": "By me"})
    runs.set_title(id, "By the model again")
    assert shown(me.get(f"{ROOT}/{id}"))["title"] == "By me"


def test_editing_a_question_makes_a_sibling(me: Person) -> None:
    one = make_exchange(me.actor, text="one")
    two = make_exchange(me.actor, one.conversation_id, "two", parent_id=one.answer_id)
    path = f"{ROOT}/{one.conversation_id}/messages"
    edited = shown(me.post(path, question("two, better", parent_id=str(one.answer_id))), 201)
    assert edited["question"]["parent_id"] == str(one.answer_id)
    rows = messages(me, path)
    assert [row["seq"] for row in rows] == [1, 2, 3, 4, 5, 6]
    siblings = [row["id"] for row in rows if row["parent_id"] == str(one.answer_id)]
    assert siblings == [str(two.question_id), edited["question"]["id"]]
    assert shown(me.get(f"{ROOT}/{one.conversation_id}"))["head_message_id"] == edited["answer"]["id"]


def test_regenerating_makes_another_answer(me: Person) -> None:
    made = make_exchange(me.actor)
    path = f"{ROOT}/{made.conversation_id}/messages"
    again = shown(me.post(f"{path}/{made.answer_id}/regenerate", {"client_id": str(uuid4())}), 201)
    assert set(again) == {"answer", "run"}
    assert again["answer"]["parent_id"] == str(made.question_id)
    assert again["run"]["question_id"] == str(made.question_id)
    finish(UUID(again["run"]["id"]), "Another.")
    assert [row["text"] for row in messages(me, path)] == ["Why is the sky blue?", "Rayleigh scattering.", "Another."]


def test_switching_the_branch(me: Person) -> None:
    one = make_exchange(me.actor, text="one")
    other = make_exchange(me.actor, one.conversation_id, "other")
    path = f"{ROOT}/{one.conversation_id}"
    assert shown(me.get(path))["head_message_id"] == str(other.answer_id)
    assert shown(me.patch(path, {"head_message_id": str(one.answer_id)}))["head_message_id"] == str(one.answer_id)
    for unknown in (new_id(), make_exchange(me.actor).answer_id, make_exchange(make_actor()).answer_id):
        assert me.patch(path, {"head_message_id": str(unknown)}).status_code == 404
    assert shown(me.get(path))["head_message_id"] == str(one.answer_id)


def test_an_unfinished_answer_shows_its_checkpoint(me: Person) -> None:
    made = ask(me.actor, make_conversation(me.actor))
    attempt = claim(made.run_id)
    runs.checkpoint_runs([runs.Progress(made.run_id, attempt, 7, "So far", (1, 2), (3,), 2)])
    answer = messages(me, f"{ROOT}/{made.conversation_id}/messages")[1]
    assert (answer["status"], answer["text"]) == ("running", "So far")


def test_a_tree_longer_than_a_page(me: Person, path: str) -> None:
    conversation = Conversation.objects.get(id=path.split("/")[3])
    conversation.messages.bulk_create(
        Message(
            conversation=conversation, organization_id=me.actor.organization_id, seq=seq, role="user", text=str(seq)
        )
        for seq in range(1, 1206)
    )
    first = shown(me.get(path))
    rest = shown(me.get(path, cursor=first["next"]))
    assert [row["seq"] for row in first["results"] + rest["results"]] == list(range(1, 1206))
    assert rest["next"] is None
    for cursor in ("x", "-1", "²", "1.5"):
        assert shown(me.get(path, cursor=cursor), 422)["code"] == "invalid"
    assert shown(me.get(path, cursor="9" * 30))["results"] == []


# ------------------------------------------------------------------ what may follow what


def test_a_question_follows_a_finished_answer(me: Person) -> None:
    made = make_exchange(me.actor)
    path = f"{ROOT}/{made.conversation_id}/messages"
    elsewhere = make_exchange(me.actor)
    for parent, says in (
        (made.question_id, "A question follows an answer."),
        (new_id(), "The message this follows does not exist."),
        (elsewhere.answer_id, "The message this follows does not exist."),
    ):
        problem = shown(me.post(path, question(parent_id=str(parent))), 422)
        assert problem["detail"] == says
        assert "parent_id" in problem["fields"]
    waiting = ask(me.actor, made.conversation_id, parent_id=made.answer_id)
    assert shown(me.post(path, question(parent_id=str(waiting.answer_id))), 409)["code"] == "conflict"
    assert len(messages(me, path)) == 4


def test_what_can_be_generated_again(me: Person) -> None:
    made = make_exchange(me.actor)
    path = f"{ROOT}/{made.conversation_id}/messages"
    body = {"client_id": str(uuid4())}
    assert me.post(f"{path}/{made.question_id}/regenerate", body).status_code == 422
    assert me.post(f"{path}/{new_id()}/regenerate", body).status_code == 404
    assert me.post(f"{path}/{make_exchange(make_actor()).answer_id}/regenerate", body).status_code == 404
    waiting = ask(me.actor, made.conversation_id, parent_id=made.answer_id)
    assert me.post(f"{path}/{waiting.answer_id}/regenerate", body).status_code == 409
    for state in (RunState.FAILED, RunState.CANCELLED, RunState.INCOMPLETE):
        ended = ask(me.actor, make_conversation(me.actor))
        finish(ended.run_id, "", state=state)
        again = f"{ROOT}/{ended.conversation_id}/messages/{ended.answer_id}/regenerate"
        assert me.post(again, {"client_id": str(uuid4())}).status_code == 201


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize("text", ["", " ", "\n\t\u2003"])
def test_an_empty_question_is_refused(me: Person, path: str, text: str) -> None:
    problem = shown(me.post(path, question(text)), 422)
    assert "text" in problem["fields"]
    assert messages(me, path) == []


def test_nul_is_refused_by_name(me: Person, path: str) -> None:
    problem = shown(me.post(path, question("a\x00b")), 422)
    assert "text" in problem["fields"]
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("characters", "status"), [(200_000, 201), (200_001, 413), (900_000, 413), (2 << 20, 413), (9 << 20, 413)]
)
def test_long_questions(me: Person, path: str, characters: int, status: int) -> None:
    response = me.post(path, question("x" * characters))
    assert response.status_code == status
    if status == 413:
        problem = shown(response, 413)
        assert problem["code"] == "too_large"
        assert "file" in problem["detail"]
        assert messages(me, path) == []


def test_text_is_kept_to_the_last_character(me: Person, path: str) -> None:
    text = "  \u202eRTL\u200d 👩‍👩‍👧 e\u0301 \U0010ffff \x01\x7f\u2028\r\n<b>&amp;</b> \\u0041 {{x}} %s \ufeff "
    assert shown(me.post(path, question(text)), 201)["question"]["text"] == text
    assert messages(me, path)[0]["text"] == text


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "client_id"),
        ({"client_id": "1", "text": "x"}, "client_id"),
        ({"client_id": str(uuid4())}, "text"),
        ({"client_id": str(uuid4()), "text": None}, "text"),
        ({"client_id": str(uuid4()), "text": {"a": 1}}, "text"),
        ({"client_id": str(uuid4()), "text": "x", "parent_id": "y"}, "parent_id"),
        ({"client_id": str(uuid4()), "text": "x", "file_ids": "y"}, "file_ids"),
        ({"client_id": str(uuid4()), "text": "x", "file_ids": ["y"]}, "file_ids"),
        ({"client_id": str(uuid4()), "text": "x", "file_ids": [str(uuid4())] * 101}, "file_ids"),
        ({"client_id": str(uuid4()), "text": "x", "model": ""}, "model"),
        ({"client_id": str(uuid4()), "text": "x", "model": "m" * 201}, "model"),
    ],
)
def test_fields_that_do_not_hold_what_they_should(me: Person, path: str, body: dict[str, Any], field: str) -> None:
    assert field in shown(me.post(path, body), 422)["fields"]
    assert not Run.objects.exists()


def test_files_that_are_not_there_or_too_many(me: Person, path: str, settings: Any) -> None:
    assert shown(me.post(path, question(file_ids=[str(new_id())])), 404)["code"] == "not_found"
    many = [str(new_id()) for _ in range(settings.FILES_PER_MESSAGE + 1)]
    assert "file_ids" in shown(me.post(path, question(file_ids=many)), 422)["fields"]
    assert messages(me, path) == []


# ------------------------------------------------------------------ models and room


def test_a_model_that_does_not_exist_is_answered_with_those_that_do(me: Person, path: str) -> None:
    serve_model("other")
    problem = shown(me.post(path, question(model="gpt-99")), 404)
    assert problem["code"] == "model_not_found"
    assert all(f" {name}" in problem["detail"] for name in ("auto", "fake", "other"))
    assert messages(me, path) == []
    assert shown(me.post(path, question(model="other")), 201)["run"]["model"] == "other"


@pytest.mark.parametrize("state", [ReplicaState.GONE, None])
def test_no_replica_is_told_with_a_time_to_come_back(state: ReplicaState | None, services: Any) -> None:
    me = Person()
    path = f"{ROOT}/{make_conversation(me.actor)}/messages"
    serve_model()
    services.valkey.call("FLUSHALL")
    if state is not None:
        serve_model(state=state)
    response = me.post(path, question())
    problem = shown(response, 503)
    assert problem["code"] == "no_replica"
    assert int(response.headers["Retry-After"]) == problem["retry_after_s"] >= 1
    assert messages(me, path) == []


def test_a_model_that_loads_takes_a_short_line(me: Person, path: str) -> None:
    serve_model(state=ReplicaState.STARTING, slots=1)
    assert me.post(path, question()).status_code == 201


def test_a_full_line_is_told_with_its_reason(me: Person, path: str, settings: Any) -> None:
    settings.RUN_QUEUE_PER_SLOT = 1
    serve_model(slots=2)
    for _ in range(4):
        assert me.post(path, question()).status_code == 201
    response = me.post(path, question())
    problem = shown(response, 503)
    assert (problem["code"], problem["reason"]) == ("overloaded", "queue_full")
    assert int(response.headers["Retry-After"]) >= 1
    assert len(messages(me, path)) == 8, "nothing of a refused question is kept"
    finish(Run.objects.first().id)  # type: ignore[union-attr]
    assert me.post(path, question()).status_code == 201


def test_the_line_of_one_model_does_not_fill_that_of_another(me: Person, path: str, settings: Any) -> None:
    settings.RUN_QUEUE_PER_SLOT = 0
    serve_model(slots=1)
    serve_model("other", slots=1)
    assert me.post(path, question(model="fake")).status_code == 201
    assert me.post(path, question(model="fake")).status_code == 503
    assert me.post(path, question(model="other")).status_code == 201


def test_one_person_can_have_so_many_answers_at_once(me: Person, path: str, settings: Any) -> None:
    settings.ADMISSION_POLICY = own_runs(2)
    for _ in range(2):
        me.post(path, question())
    response = me.post(path, question())
    assert shown(response, 429)["code"] == "rate_limited"
    assert int(response.headers["Retry-After"]) >= 1
    other = Person()
    assert other.post(f"{ROOT}/{make_conversation(other.actor)}/messages", question()).status_code == 201
    finish(Run.objects.filter(user_id=me.actor.user_id).first().id)  # type: ignore[union-attr]
    assert me.post(path, question()).status_code == 201


def test_so_many_a_minute(me: Person, path: str, settings: Any) -> None:
    settings.RUNS_PER_USER_PER_MINUTE = 3
    statuses = [me.post(path, question()).status_code for _ in range(4)]
    assert statuses == [201, 201, 201, 429]
