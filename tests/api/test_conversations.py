"""Conversations over HTTP: making, finding, changing, deleting, bringing back and branching them."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.accounts.types import Actor
from apps.conversations.models import Conversation, Run
from apps.core.ids import new_id
from tests.factories.accounts import make_actor, make_colleague
from tests.factories.conversations import ask, finish, make_conversation, make_exchange
from tests.factories.people import Person, shown, what_is_said

pytestmark = pytest.mark.django_db
ROOT = "/api/conversations"


@pytest.fixture
def me() -> Person:
    return Person()


def names(page: Any) -> list[str]:
    return [row["title"] for row in page["results"]]


def test_a_new_conversation_is_empty_and_found_again(me: Person) -> None:
    made = shown(me.post(ROOT, {"title": "Trip to Sylt"}), 201)
    assert made["title"] == "Trip to Sylt"
    assert made | {"id": "", "created_at": "", "updated_at": ""} == {
        "id": "", "title": "Trip to Sylt", "pinned": False, "archived": False, "deleted_at": None,
        "head_message_id": None, "created_at": "", "updated_at": "", "active_run_id": None,
    }  # fmt: skip
    assert shown(me.get(f"{ROOT}/{made['id']}")) == made
    assert shown(me.get(ROOT)) == {"results": [made], "next": None}
    assert shown(me.get(f"{ROOT}/{made['id']}/messages")) == {"results": [], "next": None}


@pytest.mark.parametrize(
    ("body", "field"),
    [({"title": "x" * 201}, "title"), ({"title": "a\x00b"}, "title"), ({"title": 7, "extra": []}, None)],
)
def test_titles_are_checked(me: Person, body: dict[str, Any], field: str | None) -> None:
    response = me.post(ROOT, body)
    assert response.status_code == (422 if field else 201)
    if field:
        assert field in shown(response, 422)["fields"]


@pytest.mark.parametrize("body", ["{", '"text"', "[1]", "{'a':1}", '{"title": "\\ud800"}'])
def test_a_body_that_is_not_an_object_of_json_is_refused(me: Person, body: str) -> None:
    answer = me.client.post(ROOT, body, content_type="application/json")
    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid"


def test_renaming_pinning_and_archiving(me: Person) -> None:
    id = make_conversation(me.actor, title="Before")
    path = f"{ROOT}/{id}"
    assert shown(me.patch(path, {"title": "After"}))["title"] == "After"
    pinned = shown(me.patch(path, {"pinned": True}))
    assert pinned["pinned"]
    assert shown(me.patch(path, {"pinned": True})) == pinned, "once more changes nothing"
    assert not shown(me.patch(path, {"pinned": False}))["pinned"]
    assert shown(me.patch(path, {"archived": True}))["archived"]
    assert names(shown(me.get(ROOT))) == []
    assert names(shown(me.get(ROOT, archived="true"))) == ["After"]
    assert not shown(me.patch(path, {"archived": False}))["archived"]
    assert names(shown(me.get(ROOT))) == ["After"]


def test_pinned_ones_come_first_and_only_on_the_first_page(me: Person) -> None:
    ids = [make_conversation(me.actor, title=str(n)) for n in range(5)]
    me.patch(f"{ROOT}/{ids[1]}", {"pinned": True})
    first = shown(me.get(ROOT, limit=2))
    assert names(first) == ["1", "4", "3"]
    assert names(shown(me.get(ROOT, limit=2, cursor=first["next"]))) == ["2", "0"]


def test_pages_have_every_conversation_once_while_new_ones_arrive(me: Person) -> None:
    now = timezone.now() - timedelta(hours=1)
    for n in range(23):
        id = make_conversation(me.actor, title=str(n))
        # Groups that share a moment: the cursor must not skip or repeat within one.
        Conversation.objects.filter(id=id).update(updated_at=now + timedelta(seconds=n // 5))
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = shown(me.get(ROOT, limit=4, **cursor))
        seen += names(page)
        make_conversation(me.actor, title="late")
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
    assert sorted(seen, key=int) == [str(n) for n in range(23)]
    assert [int(title) // 5 for title in seen] == sorted((n // 5 for n in range(23)), reverse=True)


def cursor_of(moment: str, id: str = "0198c0de-0000-7000-8000-000000000001") -> str:
    return base64.urlsafe_b64encode(f"{moment}|{id}".encode()).decode()


@pytest.mark.parametrize(
    "cursor", ["x", "ü", "eA==", cursor_of("2026-01-01", "1"), cursor_of("soon"), cursor_of("9999-99-99")]
)
def test_a_foreign_cursor_is_refused(me: Person, cursor: str) -> None:
    assert shown(me.get(ROOT, cursor=cursor), 422)["code"] == "invalid"


@pytest.mark.parametrize("moment", ["2026-01-01", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_a_cursor_at_a_strange_moment_does_no_harm(me: Person, moment: str) -> None:
    assert me.get(ROOT, cursor=cursor_of(moment)).status_code in (200, 422)


@pytest.mark.parametrize("limit", ["0", "-3", "many", "²", "1000000"])
def test_a_strange_limit_gives_a_page_all_the_same(me: Person, limit: str) -> None:
    make_conversation(me.actor, title="only")
    assert names(shown(me.get(ROOT, limit=limit))) == ["only"]


def test_titles_are_searched_without_wildcards(me: Person) -> None:
    for title in ("Straße 100%", "strasse", "a_b", "axb"):
        make_conversation(me.actor, title=title)
    assert names(shown(me.get(ROOT, q="STRAßE"))) == ["Straße 100%"]
    assert names(shown(me.get(ROOT, q="%"))) == ["Straße 100%"]
    assert names(shown(me.get(ROOT, q="a_b"))) == ["a_b"]
    assert names(shown(me.get(ROOT, q="\x00"))) == []


def test_deleting_hides_and_restoring_brings_back(me: Person) -> None:
    made = make_exchange(me.actor)
    path = f"{ROOT}/{made.conversation_id}"
    assert me.delete(path).status_code == 204
    assert names(shown(me.get(ROOT))) == []
    deleted = shown(me.get(ROOT, deleted="true"))["results"]
    assert [row["id"] for row in deleted] == [str(made.conversation_id)]
    assert deleted[0]["deleted_at"] is not None
    for hidden in (path, f"{path}/messages", f"/api/runs/{made.run_id}", f"/api/runs/{made.run_id}/context"):
        assert shown(me.get(hidden), 404)["code"] == "not_found"
    restored = shown(me.post(f"{path}/restore"))
    assert restored["deleted_at"] is None
    assert shown(me.post(f"{path}/restore")) == restored, "once more changes nothing"
    assert len(shown(me.get(f"{path}/messages"))["results"]) == 2


def test_the_retention_window_ends(me: Person) -> None:
    id = make_conversation(me.actor)
    me.delete(f"{ROOT}/{id}")
    Conversation.objects.filter(id=id).update(deleted_at=timezone.now() - timedelta(days=30, minutes=1))
    assert shown(me.post(f"{ROOT}/{id}/restore"), 410)["code"] == "gone"
    Conversation.objects.filter(id=id).update(deleted_at=timezone.now() - timedelta(days=29, hours=23))
    assert me.post(f"{ROOT}/{id}/restore").status_code == 200


def test_deleting_asks_for_the_end_of_its_runs(me: Person) -> None:
    made = ask(me.actor, make_conversation(me.actor))
    me.delete(f"{ROOT}/{made.conversation_id}")
    assert Run.objects.get(id=made.run_id).cancel_requested_at is not None


def test_an_active_run_is_named_until_it_ends(me: Person) -> None:
    made = ask(me.actor, make_conversation(me.actor))
    path = f"{ROOT}/{made.conversation_id}"
    assert shown(me.get(path))["active_run_id"] == str(made.run_id)
    assert shown(me.get(ROOT))["results"][0]["active_run_id"] == str(made.run_id)
    finish(made.run_id)
    assert shown(me.get(path))["active_run_id"] is None


def test_a_page_costs_the_same_number_of_queries_whatever_its_length(me: Person) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            me.get(ROOT)
        return len(queries)

    make_exchange(me.actor)
    me.get(ROOT)
    one = cost()
    for _ in range(5):
        make_exchange(me.actor)
    assert cost() == one


# ------------------------------------------------------------------ branches


def test_a_branch_becomes_a_conversation_of_its_own(me: Person) -> None:
    first = make_exchange(me.actor, text="one", answer="uno")
    second = make_exchange(me.actor, first.conversation_id, "two", "dos", parent_id=first.answer_id)
    make_exchange(me.actor, first.conversation_id, "other", "otro", parent_id=first.answer_id)
    source = f"{ROOT}/{first.conversation_id}"
    copy = shown(me.post(f"{source}/branch", {"message_id": str(second.answer_id)}), 201)
    assert copy["id"] != str(first.conversation_id)
    messages = shown(me.get(f"{ROOT}/{copy['id']}/messages"))["results"]
    assert [(m["seq"], m["role"], m["text"]) for m in messages] == [
        (1, "user", "one"), (2, "assistant", "uno"), (3, "user", "two"), (4, "assistant", "dos"),
    ]  # fmt: skip
    assert [m["parent_id"] for m in messages] == [None, *(m["id"] for m in messages[:-1])]
    assert copy["head_message_id"] == messages[-1]["id"]
    assert len(shown(me.get(f"{source}/messages"))["results"]) == 6, "the source is as it was"
    after = make_exchange(me.actor, copy["id"], "three", "tres", parent_id=messages[-1]["id"])
    texts = [m["text"] for m in shown(me.get(f"{ROOT}/{after.conversation_id}/messages"))["results"]]
    assert texts == ["one", "uno", "two", "dos", "three", "tres"]


def test_a_branch_leaves_out_an_answer_in_progress(me: Person) -> None:
    made = ask(me.actor, make_conversation(me.actor), "one")
    copy = shown(me.post(f"{ROOT}/{made.conversation_id}/branch", {"message_id": str(made.answer_id)}), 201)
    assert [m["text"] for m in shown(me.get(f"{ROOT}/{copy['id']}/messages"))["results"]] == ["one"]


# ------------------------------------------------------------------ whose it is


def paths(actor: Actor) -> list[tuple[str, str, dict[str, str]]]:
    """Each way to name a conversation: method, path, body."""
    made = make_exchange(actor)
    return ways(str(made.conversation_id), str(made.answer_id))


def ways(conversation: str, message: str) -> list[tuple[str, str, dict[str, str]]]:
    path = f"{ROOT}/{conversation}"
    post = {"client_id": str(uuid4()), "text": "hello"}
    return [
        ("get", path, {}),
        ("patch", path, {"title": "mine now"}),
        ("delete", path, {}),
        ("post", f"{path}/restore", {}),
        ("post", f"{path}/branch", {"message_id": message}),
        ("get", f"{path}/messages", {}),
        ("post", f"{path}/messages", post),
        ("post", f"{path}/messages/{message}/regenerate", {"client_id": str(uuid4())}),
    ]


def send(person: Person, way: tuple[str, str, dict[str, str]]) -> Any:
    method, path, body = way
    if method in ("get", "delete"):
        return getattr(person, method)(path)
    return getattr(person, method)(path, body)


def test_what_is_unknown_foreign_or_deleted_looks_the_same(me: Person) -> None:
    other = make_actor()
    colleague = make_actor(make_colleague(me.actor))
    mine = make_exchange(me.actor)
    me.delete(f"{ROOT}/{mine.conversation_id}")
    unknown = [what_is_said(send(me, way)) for way in ways(str(new_id()), str(new_id()))]
    for owner in (other, colleague):
        assert [what_is_said(send(me, way)) for way in paths(owner)] == unknown
    deleted = [what_is_said(send(me, way)) for way in ways(str(mine.conversation_id), str(mine.answer_id))]
    restored = deleted.pop(3)
    del unknown[3]
    assert restored["id"] == str(mine.conversation_id), "only restoring sees a deleted one"
    assert deleted[:2] == unknown[:2]
    assert all(problem["status"] == 404 and problem["code"] == "not_found" for problem in unknown)


def test_others_lists_stay_theirs(me: Person) -> None:
    make_conversation(make_actor(), title="not yours")
    make_conversation(make_actor(make_colleague(me.actor)), title="nor this")
    assert names(shown(me.get(ROOT))) == []


def test_ids_that_are_not_ids_are_not_found(me: Person) -> None:
    for path in (f"{ROOT}/1", f"{ROOT}/{uuid4()}x", "/api/runs/abc", "/api/nothing"):
        assert me.get(path).status_code == 404
