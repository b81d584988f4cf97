"""Many requests at the same moment: one result a key, and numbers without gaps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.accounts.types import Actor
from apps.conversations.models import Conversation, Message, Run
from apps.conversations.services.api_runs import ApiCall, start_api_run
from apps.conversations.services.posting import Posted, Question, post_message, regenerate
from apps.conversations.types import RunParams, StartedRun
from apps.core.errors import AppError, IdempotencyMismatch
from inference.protocol import ChatMessage
from tests.concurrency.together import together
from tests.factories.accounts import make_actor
from tests.factories.conversations import Exchange, make_conversation, make_exchange, serve_model

pytestmark = pytest.mark.django_db(transaction=True)
# Each has a connection of its own, and the pool has sixteen.
THREADS = 8


@pytest.fixture
def me() -> Actor:
    serve_model(slots=10_000)
    return make_actor()


def post(me: Actor, conversation: UUID, text: str, client_id: UUID, key: str | None = None) -> Callable[[], Posted]:
    return partial(post_message, me, Question(conversation, client_id, text, None, (), "auto"), key=key)


def made(results: list[Any]) -> tuple[list[Posted], list[Exception]]:
    """The new ones, and what was refused. Whatever is neither a result nor a refusal fails the test."""
    errors = [result for result in results if isinstance(result, Exception)]
    assert all(isinstance(error, AppError) for error in errors), errors
    return [result for result in results if not isinstance(result, Exception) and result.created], errors


def run_ids(results: list[Any]) -> set[UUID]:
    return {result.view["run"]["id"] for result in results if isinstance(result, Posted)}


@pytest.mark.parametrize("key", ["k-1", None])
def test_one_request_sent_many_times_at_once_is_one_run(me: Actor, key: str | None) -> None:
    conversation, client_id = make_conversation(me), uuid4()
    results = together([post(me, conversation, "Why?", client_id, key)] * THREADS)
    new, errors = made(results)
    assert (len(new), errors, len(run_ids(results))) == (1, [], 1)
    assert Run.objects.count() == 1
    assert Message.objects.count() == 2


def test_so_many_keys_make_so_many_runs(me: Actor) -> None:
    conversation, requests = make_conversation(me), [(uuid4(), f"k-{n}") for n in range(6)]
    for _ in range(3):
        results = together([post(me, conversation, key, id, key) for id, key in requests for _ in range(2)])
        assert made(results)[1] == []
        assert len(run_ids(results)) == 6
    assert Run.objects.count() == 6
    seqs = Message.objects.order_by("seq").values_list("seq", flat=True)
    assert list(seqs) == list(range(1, 13))


def test_numbers_have_no_gaps_whoever_writes(me: Actor) -> None:
    conversation = make_conversation(me)
    for _ in range(3):
        new, errors = made(together([post(me, conversation, "Why?", uuid4()) for _ in range(THREADS)]))
        assert (len(new), errors) == (THREADS, [])
    rows = list(Message.objects.order_by("seq").values_list("seq", "role", "parent_id", "id"))
    assert [row[0] for row in rows] == list(range(1, 6 * THREADS + 1))
    # Each question is followed by its own answer: the two are written together.
    for question, answer in zip(rows[::2], rows[1::2], strict=True):
        assert (question[1], answer[1], answer[2]) == ("user", "assistant", question[3])
    assert Conversation.objects.get().last_seq == 6 * THREADS


def test_a_key_used_in_two_conversations_at_once_belongs_to_one(me: Actor) -> None:
    conversations = [make_conversation(me) for _ in range(THREADS)]
    results = together([post(me, conversation, "Why?", uuid4(), "k-1") for conversation in conversations])
    new, errors = made(results)
    assert len(new) == 1
    assert all(isinstance(error, IdempotencyMismatch) for error in errors)
    assert Run.objects.count() == 1
    assert Message.objects.count() == 2, "nothing is left of those that were refused"


def test_a_client_id_used_for_two_questions_at_once_belongs_to_one(me: Actor) -> None:
    conversation, client_id = make_conversation(me), uuid4()
    new, errors = made(together([post(me, conversation, f"Question {n}?", client_id) for n in range(THREADS)]))
    assert len(new) == 1
    assert len(errors) == THREADS - 1
    assert all(isinstance(error, IdempotencyMismatch) for error in errors)
    assert Message.objects.count() == 2


def test_regenerating_once_however_often_it_is_asked(me: Actor) -> None:
    one, other, client_id = make_exchange(me), make_exchange(me), uuid4()

    def again(at: Exchange) -> Callable[[], Posted]:
        return lambda: regenerate(
            me, conversation_id=at.conversation_id, answer_id=at.answer_id, client_id=client_id, model="auto"
        )

    new, errors = made(together([again(at) for at in (one, other) for _ in range(4)]))
    assert len(new) == 1
    assert {type(error) for error in errors} <= {IdempotencyMismatch}
    assert Run.objects.count() == 3


def test_an_api_call_with_one_key_is_one_run(me: Actor) -> None:
    prompt = (ChatMessage("user", "Why?"),)
    call = partial(start_api_run, me, ApiCall("auto", prompt, RunParams(), "k-1"))
    results = together([call] * THREADS)
    assert all(isinstance(result, StartedRun) for result in results), results
    assert len({result.run_id for result in results if isinstance(result, StartedRun)}) == 1
    assert Run.objects.count() == Conversation.objects.count() == Message.objects.count() == 1


def test_a_key_shared_by_both_apis_at_once_belongs_to_one(me: Actor) -> None:
    conversation, prompt = make_conversation(me), (ChatMessage("user", "Why?"),)
    native = post(me, conversation, "Why?", uuid4(), "k-1")
    api = partial(start_api_run, me, ApiCall("auto", prompt, RunParams(), "k-1"))
    results = together([native, api] * 4)
    made(results)
    assert Run.objects.count() == 1
