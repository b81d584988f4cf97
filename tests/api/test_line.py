"""What the web does with the shared line: a place before the run is written, or a refusal and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings as configured

from apps.accounts.types import ModelPolicy
from apps.conversations.models import Message, Run
from apps.conversations.services import line, runs
from apps.conversations.services.api_runs import ApiCall, start_api_run
from apps.conversations.services.registry import forget_models
from apps.conversations.types import RunParams
from apps.core.errors import Overloaded, RateLimited
from apps.core.valkey import valkey
from inference.admission import Budget, Gate, Policy, Tier
from inference.protocol import ChatMessage
from tests.factories.accounts import make_actor
from tests.factories.admission import a_replica, an_ask, connect, leaks
from tests.factories.conversations import make_conversation, serve_model
from tests.factories.inference import publish_replica
from tests.factories.line import Runner
from tests.factories.people import Person, shown

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def short_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """One may wait of each class."""
    policy = Policy(max_waiting=1, users=dict.fromkeys(Tier, Budget(concurrency=3)))
    monkeypatch.setattr(line, "_gate", lambda: Gate(valkey, policy))


@pytest.fixture
def runner() -> Runner:
    serve_model(slots=1)
    return Runner(a_replica("fake-1", model="fake", slots=1))


def ask(person: Person, **changes: Any) -> Any:
    path = f"/api/conversations/{make_conversation(person.actor)}/messages"
    body = {"client_id": str(uuid4()), "text": "Why is the sky blue?", "model": "fake"}
    return person.post(path, body | changes)


def owner_of(run_id: str | UUID) -> str | None:
    owner: str | None = connect(configured.REDIS_URL).hget(f"adm:t:{UUID(str(run_id)).hex}", "owner")
    return owner


def test_an_accepted_question_has_its_place_before_any_runner_saw_it(runner: Runner) -> None:
    me = Person()
    first = shown(ask(me), 201)["run"]["id"]
    second = shown(ask(me), 201)["run"]["id"]
    assert [owner_of(first), owner_of(second)] == ["gate", "gate"]
    view = shown(me.get(f"/api/runs/{second}"))
    assert (view["queue_position"], view["state"]) == (1, "queued")
    assert leaks(connect(configured.REDIS_URL)) == []


def test_a_full_line_is_told_with_the_model_that_has_room_and_nothing_is_written(runner: Runner) -> None:
    publish_replica("fake", slots=1, level=3)
    publish_replica("small", level=1)
    publish_replica("middle", level=2)
    forget_models()
    for _ in range(2):
        assert ask(Person()).status_code == 201
    before = (Run.objects.count(), Message.objects.count())
    response = ask(Person())
    problem = shown(response, 503)
    assert (problem["code"], problem["reason"], problem["alternative"]) == ("overloaded", "queue_full", "middle")
    assert "Middle has room" in problem["detail"]
    assert int(response.headers["Retry-After"]) >= 1
    assert (Run.objects.count(), Message.objects.count()) == before
    assert connect(configured.REDIS_URL).zcard("adm:deadlines") == 2


def test_a_person_with_too_much_in_progress_is_told_so(runner: Runner) -> None:
    me = Person()
    for n in range(3):
        runner.ask(an_ask(f"{n}", model="fake", user=str(me.actor.user_id), accepted=True))
    problem = shown(ask(me), 429)
    assert (problem["code"], problem["reason"]) == ("rate_limited", "user_limit")


def test_a_prompt_that_no_replica_can_hold_is_refused_at_once(runner: Runner) -> None:
    problem = shown(ask(Person(), text="word " * 15_000), 413)
    assert "Shorten it" in problem["detail"]


def test_a_refused_request_and_a_replay_leave_no_place_behind(runner: Runner) -> None:
    me = Person()
    key = str(uuid4())
    path = f"/api/conversations/{make_conversation(me.actor)}/messages"
    body = {"client_id": str(uuid4()), "text": "Why?", "model": "fake"}
    assert me.post(path, body | {"parent_id": str(uuid4())}).status_code == 422
    assert connect(configured.REDIS_URL).zcard("adm:deadlines") == 0
    first = shown(me.post(path, body, idempotency_key=key), 201)
    again = shown(me.post(path, body, idempotency_key=key), 200)
    assert again["run"]["id"] == first["run"]["id"]
    assert connect(configured.REDIS_URL).zcard("adm:deadlines") == 1
    assert leaks(connect(configured.REDIS_URL)) == []


def test_cancelling_a_run_that_nobody_took_up_gives_its_place_back(runner: Runner) -> None:
    me = Person()
    run = shown(ask(me), 201)["run"]["id"]
    runs.cancel_run(me.actor, UUID(run))
    assert owner_of(run) is None


def test_runs_of_the_api_enter_the_same_line(runner: Runner) -> None:
    call = ApiCall("fake", [ChatMessage("user", "Hello")], RunParams(max_tokens=5))
    started = start_api_run(make_actor(), call)
    assert owner_of(started.run_id) == "gate"
    assert connect(configured.REDIS_URL).hget(f"adm:t:{started.run_id.hex}", "need") == "7"
    start_api_run(make_actor(), call)
    with pytest.raises(Overloaded):
        start_api_run(make_actor(), call)
    assert Run.objects.count() == 2


def test_a_key_that_was_used_before_takes_no_second_place(runner: Runner) -> None:
    actor = make_actor()
    call = ApiCall("fake", [ChatMessage("user", "Hello")], RunParams(), key="k")
    first = start_api_run(actor, call)
    second = start_api_run(actor, call)
    assert (second.run_id, second.created) == (first.run_id, False)
    assert connect(configured.REDIS_URL).zcard("adm:deadlines") == 1


def test_the_organizations_limit_is_a_429_too(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = Policy(organizations=dict.fromkeys(Tier, Budget(concurrency=1)))
    monkeypatch.setattr(line, "_gate", lambda: Gate(valkey, policy))
    actor = make_actor()
    call = ApiCall("fake", [ChatMessage("user", "Hello")], RunParams())
    start_api_run(actor, call)
    with pytest.raises(RateLimited) as refused:
        start_api_run(actor, call)
    assert refused.value.extra["reason"] == "organization_limit"


def test_the_line_is_that_of_the_region(runner: Runner) -> None:
    publish_replica("fake", slots=1, region="eu")
    publish_replica("fake", slots=1, region="us")
    forget_models()
    Runner(a_replica("fake-eu", model="fake@eu", slots=1))
    actor = replace(make_actor(), policy=ModelPolicy(region="eu"))
    call = ApiCall("fake", [ChatMessage("user", "Hello")], RunParams())
    started = [start_api_run(actor, call) for _ in range(2)]
    models = [connect(configured.REDIS_URL).hget(f"adm:t:{run.run_id.hex}", "model") for run in started]
    assert models == ["fake@eu", "fake@eu"], "one waits there though others have room"
    with pytest.raises(Overloaded):
        start_api_run(actor, call)
