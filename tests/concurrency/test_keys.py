"""One `Idempotency-Key` in many requests at the same moment, where no row is there yet to be locked."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

import pytest

from apps.accounts.types import Actor
from apps.conversations.models import Conversation, Run
from apps.conversations.services.conversations import create_conversation
from apps.conversations.services.posting import Posted, regenerate
from apps.core.errors import IdempotencyMismatch
from tests.concurrency.together import together
from tests.factories.accounts import make_actor
from tests.factories.conversations import make_exchange, serve_model

pytestmark = pytest.mark.django_db(transaction=True)
THREADS = 8


@pytest.fixture
def me() -> Actor:
    serve_model(slots=10_000)
    return make_actor()


def test_regenerating_with_one_key_is_one_run(me: Actor) -> None:
    at = make_exchange(me)

    def again() -> Posted:
        return regenerate(
            me,
            conversation_id=at.conversation_id,
            answer_id=at.answer_id,
            client_id=uuid4(),
            model="auto",
            key="k-1",
        )

    results = together([again] * THREADS)
    assert not any(isinstance(result, Exception) for result in results), results
    assert sorted(result.created for result in results) == [False] * (THREADS - 1) + [True]
    assert len({result.view["run"]["id"] for result in results}) == 1
    assert Run.objects.count() == 2


def test_a_conversation_with_one_key_is_made_once(me: Actor) -> None:
    for number in range(5):
        calls = [partial(create_conversation, me, title="Sylt", key=f"k-{number}")] * THREADS
        results = together(calls)
        assert not any(isinstance(result, Exception) for result in results), results
        assert sorted(created for _, created in results) == [False] * (THREADS - 1) + [True]
        assert len({view["id"] for view, _ in results}) == 1
    assert Conversation.objects.count() == 5


def test_a_key_sent_with_two_titles_at_once_belongs_to_one(me: Actor) -> None:
    results = together([partial(create_conversation, me, title=f"{n}", key="k-1") for n in range(THREADS)])
    errors = [result for result in results if isinstance(result, Exception)]
    assert len(errors) == THREADS - 1
    assert all(isinstance(error, IdempotencyMismatch) for error in errors), errors
    assert Conversation.objects.count() == 1
