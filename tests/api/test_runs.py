"""Runs over HTTP, without a runner: what is shown, recorded, and what cancelling does to one that has not begun."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from apps.accounts.models import UsageEntry
from apps.conversations.models import Run
from apps.conversations.services import finishing, runs
from apps.conversations.types import RunResult, RunState
from apps.core.ids import new_id
from apps.core.valkey import valkey
from tests.factories.accounts import make_actor, make_colleague
from tests.factories.conversations import (
    Exchange,
    ask,
    claim,
    finish,
    live_runner,
    make_conversation,
    make_exchange,
    serve_model,
)
from tests.factories.people import Person, shown, what_is_said

pytestmark = pytest.mark.django_db


@pytest.fixture
def me() -> Person:
    return Person()


@pytest.fixture
def waiting(me: Person) -> Exchange:
    return ask(me.actor, make_conversation(me.actor))


def run_of(me: Person, run_id: UUID) -> Any:
    return shown(me.get(f"/api/runs/{run_id}"))


def states(run_id: UUID) -> list[tuple[str, int]]:
    return [(step["state"], step["attempt"]) for step in Run.objects.get(id=run_id).transitions]


@pytest.mark.django_db(transaction=True)
def test_every_transition_is_recorded_with_its_time_and_cause(me: Person, waiting: Exchange) -> None:
    dead, alive = live_runner(lease_s=-1), live_runner()
    assert claim(waiting.run_id, runner=dead) == 1
    assert claim(waiting.run_id, runner=alive) == 2
    result = RunResult(RunState.COMPLETED, "Blue.", "stop", model="fake", replica="fake-1")
    assert finishing.finish_run(waiting.run_id, 2, result, by=str(alive)) is not None
    steps = Run.objects.get(id=waiting.run_id).transitions
    assert [(step["state"], step["attempt"], step["by"]) for step in steps] == [
        ("queued", 0, "web"), ("running", 1, str(dead)), ("running", 2, str(alive)), ("completed", 2, str(alive)),
    ]  # fmt: skip
    assert [step["at"] for step in steps] == sorted(step["at"] for step in steps)


@pytest.mark.django_db(transaction=True)
def test_a_finished_run_shows_what_it_used(me: Person) -> None:
    made = make_exchange(me.actor)
    run = run_of(me, made.run_id)
    assert (run["state"], run["model"], run["replica"], run["attempt"]) == ("completed", "fake", "fake-1", 1)
    assert (run["prompt_tokens"], run["completion_tokens"], run["error"]) == (9, 4, None)
    assert run["created_at"] <= run["started_at"] <= run["finished_at"]


def test_usage_is_entered_once_and_only_at_the_end(me: Person, waiting: Exchange) -> None:
    attempt = claim(waiting.run_id)
    runs.checkpoint_runs([runs.Progress(waiting.run_id, attempt, 3, "So far", (), (), 2)])
    assert not UsageEntry.objects.exists()
    result = RunResult(RunState.COMPLETED, "Blue.", "stop", prompt_tokens=10, cached_tokens=8, completion_tokens=2)
    assert finishing.finish_run(waiting.run_id, attempt, result, by="test") is not None
    assert finishing.finish_run(waiting.run_id, attempt, result, by="test") is None, "it has ended"
    entry = UsageEntry.objects.get()
    assert (entry.subject_id, entry.user_id, entry.prompt_tokens, entry.cached_tokens, entry.completion_tokens) == (
        waiting.run_id, me.actor.user_id, 10, 8, 2,
    )  # fmt: skip


# ------------------------------------------------------------------ waiting


def place(me: Person, run_id: UUID) -> tuple[int | None, float | None]:
    run = run_of(me, run_id)
    return run["queue_position"], run["estimated_wait_s"]


def test_a_waiting_run_knows_its_place_among_all_of_its_model(me: Person, waiting: Exchange) -> None:
    other = make_actor()
    later = [ask(actor, make_conversation(actor)).run_id for actor in (other, me.actor)]
    assert place(me, waiting.run_id) == (1, 0.0), "there are places for a hundred"
    serve_model(slots=1)
    valkey().set("stats:mean_run_s", 8.0)
    assert place(me, waiting.run_id) == (1, 0.0)
    assert place(me, later[1]) == (3, 8.0)
    claim(waiting.run_id)
    assert place(me, waiting.run_id) == (None, None), "it does not wait any more"
    assert place(me, later[1]) == (2, 8.0), "what runs is still before it"
    Run.objects.filter(id=later[0]).update(model="another")
    assert place(me, later[1]) == (1, 4.0)
    serve_model(slots=2)
    assert place(me, later[1]) == (1, 0.0)
    finish(later[1])
    assert place(me, later[1]) == (None, None)


# ------------------------------------------------------------------ cancelling


def cancel(me: Person, run_id: UUID) -> Any:
    return shown(me.post(f"/api/runs/{run_id}/cancel"))


def test_a_waiting_run_is_cancelled_at_once(me: Person, waiting: Exchange) -> None:
    cancelled = cancel(me, waiting.run_id)
    assert cancelled["state"] == "cancelled"
    assert cancelled["finished_at"] is not None
    assert cancel(me, waiting.run_id) == cancelled, "once more changes nothing"
    assert states(waiting.run_id) == [("queued", 0), ("cancelled", 0)]
    answer = shown(me.get(f"/api/conversations/{waiting.conversation_id}/messages"))["results"][1]
    assert (answer["status"], answer["text"]) == ("cancelled", "")
    assert runs.claim_runs(live_runner(), [waiting.run_id]) == (), "nobody may start it now"


def test_a_running_one_is_asked_to_stop(me: Person, waiting: Exchange) -> None:
    runner = live_runner()
    claim(waiting.run_id, runner=runner)
    assert cancel(me, waiting.run_id)["state"] == "running"
    first = Run.objects.get(id=waiting.run_id).cancel_requested_at
    cancel(me, waiting.run_id)
    assert Run.objects.get(id=waiting.run_id).cancel_requested_at == first
    assert runs.find_work(runner, mine=[waiting.run_id], limit=10).cancelled == (waiting.run_id,)


def test_whoever_takes_over_learns_of_the_wish_to_stop(me: Person, waiting: Exchange) -> None:
    claim(waiting.run_id, runner=live_runner(lease_s=-1))
    cancel(me, waiting.run_id)
    (claimed,) = runs.claim_runs(live_runner(), [waiting.run_id])
    assert claimed.cancel_requested


@pytest.mark.parametrize("state", [RunState.COMPLETED, RunState.FAILED, RunState.INCOMPLETE, RunState.CANCELLED])
def test_cancelling_a_finished_run_changes_nothing(me: Person, waiting: Exchange, state: RunState) -> None:
    finish(waiting.run_id, "Text.", state=state)
    before = run_of(me, waiting.run_id)
    assert cancel(me, waiting.run_id) == before
    assert Run.objects.get(id=waiting.run_id).cancel_requested_at is None


# ------------------------------------------------------------------ what was sent


def test_the_context_is_what_was_saved(me: Person, waiting: Exchange) -> None:
    path = f"/api/runs/{waiting.run_id}/context"
    nothing: dict[str, Any] = {"messages": [], "passages": [], "mode": None, "unready": [], "left_out": []}
    nothing |= {"history": None, "survey": None, "tables": None}
    assert shown(me.get(path)) == nothing
    attempt = claim(waiting.run_id)
    context = {"messages": [{"role": "user", "content": "Why?"}]}
    assert runs.save_context(waiting.run_id, attempt, context=context, model="fake")
    assert shown(me.get(path)) == nothing | context
    assert not runs.save_context(waiting.run_id, attempt - 1, context={}, model="x")
    assert shown(me.get(path)) == nothing | context


# ------------------------------------------------------------------ whose it is


def test_runs_that_are_unknown_or_foreign_look_the_same(me: Person) -> None:
    serve_model()
    ids = [
        new_id(),
        make_exchange(make_actor()).run_id,
        make_exchange(make_actor(make_colleague(me.actor))).run_id,
    ]
    for tail, send in (("", me.get), ("/context", me.get), ("/cancel", me.post)):
        said = [what_is_said(send(f"/api/runs/{id}{tail}")) for id in ids]
        assert said[0]["code"] == "not_found"
        assert said == [said[0]] * 3
    assert Run.objects.filter(cancel_requested_at__isnull=False).count() == 0
