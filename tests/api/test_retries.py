"""A request sent again: the same result, once, and never another run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from apps.conversations.models import Conversation, Message, Run
from inference.protocol import ReplicaState
from tests.factories.accounts import make_actor, make_colleague
from tests.factories.admission import own_runs
from tests.factories.conversations import (
    ask,
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


def test_a_retry_by_client_id_returns_the_first_result(me: Person, path: str) -> None:
    body = question()
    first = shown(me.post(path, body), 201)
    assert shown(me.post(path, body), 200) == first
    finish(UUID(first["run"]["id"]), "Done.")
    later = shown(me.post(path, body), 200)
    assert (later["run"]["id"], later["answer"]["text"]) == (first["run"]["id"], "Done.")
    assert len(messages(me, path)) == 2


def test_a_retry_by_header_returns_the_first_result(me: Person, path: str) -> None:
    body = question()
    first = shown(me.post(path, body, idempotency_key="k-1"), 201)
    assert shown(me.post(path, body, idempotency_key="k-1"), 200) == first
    assert shown(me.post(path, body), 200) == first, "its client id is enough"
    assert len(messages(me, path)) == 2


def test_another_body_under_the_same_key_is_refused(me: Person, path: str) -> None:
    body = question()
    me.post(path, body, idempotency_key="k-1")
    for other in (body | {"text": "Other?"}, body | {"model": "fake"}, question("Why?")):
        assert shown(me.post(path, other, idempotency_key="k-1"), 422)["code"] == "idempotency_mismatch"
    assert shown(me.post(path, body | {"text": "Other?"}), 422)["code"] == "idempotency_mismatch"
    elsewhere = f"{ROOT}/{make_conversation(me.actor)}/messages"
    assert shown(me.post(elsewhere, body, idempotency_key="k-1"), 422)["code"] == "idempotency_mismatch"
    assert me.post(elsewhere, body).status_code == 201, "a client id belongs to its conversation"
    assert len(messages(me, path)) == 2


def test_a_key_is_its_owners_alone(me: Person, path: str) -> None:
    other = Person()
    theirs = f"{ROOT}/{make_conversation(other.actor)}/messages"
    me.post(path, question("Mine"), idempotency_key="k-1")
    assert other.post(theirs, question("Theirs"), idempotency_key="k-1").status_code == 201


def test_a_key_is_free_again_after_a_day(me: Person, path: str) -> None:
    first = shown(me.post(path, question("Old"), idempotency_key="k-1"), 201)
    Run.objects.filter(id=first["run"]["id"]).update(created_at=timezone.now() - timedelta(hours=23, minutes=59))
    assert me.post(path, question("New"), idempotency_key="k-1").status_code == 422
    Run.objects.filter(id=first["run"]["id"]).update(created_at=timezone.now() - timedelta(hours=24, minutes=1))
    second = shown(me.post(path, question("New"), idempotency_key="k-1"), 201)
    assert second["run"]["id"] != first["run"]["id"]
    assert len(messages(me, path)) == 4


def test_what_was_accepted_is_not_refused_when_asked_again(me: Person, path: str, settings: Any) -> None:
    body = question()
    first = shown(me.post(path, body), 201)
    settings.ADMISSION_POLICY = own_runs(1)
    assert me.post(path, question()).status_code == 429
    assert shown(me.post(path, body), 200) == first
    serve_model(state=ReplicaState.GONE)
    assert shown(me.post(path, body), 200) == first


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize("key", ["k-1", ""])
def test_a_retry_after_its_conversation_was_deleted_finds_nothing(
    me: Person, path: str, key: str, refused: bool, settings: Any
) -> None:
    headers = {"idempotency_key": key} if key else {}
    body, once_more = question(), {"client_id": str(uuid4())}
    first = shown(me.post(path, body, **headers), 201)
    finish(UUID(first["run"]["id"]))
    again = f"{path}/{first['answer']['id']}/regenerate"
    second = shown(me.post(again, once_more), 201)
    me.delete(path.removesuffix("/messages"))
    before = (Message.objects.count(), Run.objects.count())
    if refused:
        settings.ADMISSION_POLICY = own_runs(1)
    assert shown(me.post(path, body, **headers), 404)["code"] == "not_found"
    assert shown(me.post(again, once_more), 404)["code"] == "not_found"
    assert (Message.objects.count(), Run.objects.count()) == before
    me.post(path.removesuffix("/messages") + "/restore")
    assert shown(me.post(path, body, **headers))["run"]["id"] == first["run"]["id"]
    assert shown(me.post(again, once_more))["run"]["id"] == second["run"]["id"]


def test_regenerating_is_retried_safely_too(me: Person) -> None:
    made = make_exchange(me.actor)
    path = f"{ROOT}/{made.conversation_id}/messages"
    body = {"client_id": str(uuid4())}
    first = shown(me.post(f"{path}/{made.answer_id}/regenerate", body), 201)
    assert shown(me.post(f"{path}/{made.answer_id}/regenerate", body), 200) == first
    assert me.post(f"{path}/{made.answer_id}/regenerate", body | {"model": "fake"}).status_code == 422
    assert len(messages(me, path)) == 3


def test_regenerating_honours_the_header_before_the_client_id(me: Person) -> None:
    made = make_exchange(me.actor)
    path = f"{ROOT}/{made.conversation_id}/messages"
    again = f"{path}/{made.answer_id}/regenerate"
    first = shown(me.post(again, {"client_id": str(uuid4())}, idempotency_key="k-1"), 201)
    assert shown(me.post(again, {"client_id": str(uuid4())}, idempotency_key="k-1"), 200) == first
    assert len(messages(me, path)) == 3
    other = {"client_id": str(uuid4()), "model": "fake"}
    assert shown(me.post(again, other, idempotency_key="k-1"), 422)["code"] == "idempotency_mismatch"
    assert me.post(again, other, idempotency_key="k" * 201).status_code == 422
    assert shown(me.post(path, question(), idempotency_key="k-1"), 422)["code"] == "idempotency_mismatch"
    Run.objects.filter(id=first["run"]["id"]).update(created_at=timezone.now() - timedelta(hours=24, minutes=1))
    finish(UUID(first["run"]["id"]))
    assert me.post(again, other, idempotency_key="k-1").status_code == 201
    assert len(messages(me, path)) == 4


# ------------------------------------------------------------------ conversations


def test_a_conversation_asked_for_again_is_the_first_one(me: Person) -> None:
    first = shown(me.post(ROOT, {"title": "Sylt"}, idempotency_key="k-1"), 201)
    assert shown(me.post(ROOT, {"title": "Sylt"}, idempotency_key="k-1"), 200) == first
    run_id = ask(me.actor, UUID(first["id"])).run_id
    me.patch(f"{ROOT}/{first['id']}", {"title": "Amrum"})
    later = shown(me.post(ROOT, {"title": "Sylt"}, idempotency_key="k-1"), 200)
    assert later == shown(me.get(f"{ROOT}/{first['id']}")), "as it is now"
    assert (later["title"], later["active_run_id"]) == ("Amrum", str(run_id))
    assert len({shown(me.post(ROOT, {"title": "Sylt"}), 201)["id"] for _ in range(2)}) == 2
    assert Conversation.objects.count() == 3


def test_a_conversations_key_stands_for_one_body_of_one_person_for_a_day(me: Person) -> None:
    first = shown(me.post(ROOT, {"title": "Sylt"}, idempotency_key="k-1"), 201)
    assert shown(me.post(ROOT, {"title": "Amrum"}, idempotency_key="k-1"), 422)["code"] == "idempotency_mismatch"
    assert me.post(ROOT, {}, idempotency_key="k" * 201).status_code == 422
    for other in (Person(), Person(make_actor(make_colleague(me.actor)))):
        assert shown(other.post(ROOT, {"title": "Föhr"}, idempotency_key="k-1"), 201)["id"] != first["id"]
    old = Conversation.objects.filter(id=first["id"])
    old.update(created_at=timezone.now() - timedelta(hours=23, minutes=59))
    assert shown(me.post(ROOT, {"title": "Sylt"}, idempotency_key="k-1"))["id"] == first["id"]
    old.update(created_at=timezone.now() - timedelta(hours=24, minutes=1))
    assert shown(me.post(ROOT, {"title": "Amrum"}, idempotency_key="k-1"), 201)["id"] != first["id"]
    assert me.get(f"{ROOT}/{first['id']}").status_code == 200


def test_a_conversation_that_was_deleted_is_not_made_again(me: Person) -> None:
    first = shown(me.post(ROOT, {"title": "Sylt"}, idempotency_key="k-1"), 201)
    me.delete(f"{ROOT}/{first['id']}")
    assert shown(me.post(ROOT, {"title": "Sylt"}, idempotency_key="k-1"), 404)["code"] == "not_found"
    assert Conversation.objects.count() == 1


def test_a_key_that_is_too_long_is_refused(me: Person, path: str) -> None:
    assert me.post(path, question(), idempotency_key="k" * 201).status_code == 422
    assert me.post(path, question(), idempotency_key="k" * 200).status_code == 201
