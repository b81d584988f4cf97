"""Runners that want the same run: each attempt has one owner, and an old attempt can change nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from uuid import UUID

import pytest

from apps.accounts.models import UsageEntry
from apps.accounts.types import Actor
from apps.conversations.models import Message, Run, Runner
from apps.conversations.services import finishing, runs
from apps.conversations.types import RunResult, RunState
from inference.continuation import Origin
from tests.concurrency.together import together
from tests.factories.accounts import make_actor
from tests.factories.conversations import Exchange, ask, live_runner, make_conversation

pytestmark = pytest.mark.django_db(transaction=True)
RUNNERS = 6


@pytest.fixture
def me() -> Actor:
    return make_actor()


@pytest.fixture
def waiting(me: Actor) -> Exchange:
    return ask(me, make_conversation(me))


def result(text: str, state: RunState = RunState.COMPLETED) -> RunResult:
    return RunResult(state, text, "stop", completion_tokens=3, model="fake", replica="fake-1", seq=9)


def progress(run_id: UUID, attempt: int, text: str) -> runs.Progress:
    return runs.Progress(run_id, attempt, 5, text, (1, 2), (3,), 2)


def test_each_run_is_claimed_once(me: Actor) -> None:
    conversation = make_conversation(me)
    ids = [ask(me, conversation).run_id for _ in range(20)]
    for _ in range(3):
        claims = together([partial(runs.claim_runs, live_runner(), ids) for _ in range(RUNNERS)])
        claimed = [run.id for claim in claims if not isinstance(claim, Exception) for run in claim]
        assert not any(isinstance(claim, Exception) for claim in claims), claims
        assert sorted(claimed) == sorted(ids)
        Runner.objects.all().delete()
    assert set(Run.objects.values_list("attempt", flat=True)) == {3}


def test_a_run_with_a_live_owner_is_not_for_others(waiting: Exchange) -> None:
    owner = live_runner()
    assert len(runs.claim_runs(owner, [waiting.run_id])) == 1
    other = live_runner()
    assert runs.claim_runs(other, [waiting.run_id]) == ()
    assert runs.find_work(other, mine=[], limit=10).claimable == ()
    runs.release_runner(owner)
    assert runs.find_work(other, mine=[], limit=10).claimable == (waiting.run_id,)
    assert runs.claim_runs(other, [waiting.run_id])[0].attempt == 2


def test_the_next_attempt_goes_on_from_the_checkpoint(waiting: Exchange) -> None:
    runs.claim_runs(live_runner(lease_s=-1), [waiting.run_id])
    assert runs.checkpoint_runs([progress(waiting.run_id, 1, "So far")]) == {waiting.run_id}
    (claimed,) = runs.claim_runs(live_runner(), [waiting.run_id])
    saved = claimed.checkpoint
    assert (saved.text, saved.token_ids, saved.prompt_token_ids, saved.seq) == ("So far", (1, 2), (3,), 5)


def test_an_old_attempt_changes_nothing(waiting: Exchange) -> None:
    """Each write of a runner that was taken for dead, and woke up."""
    runs.claim_runs(live_runner(lease_s=-1), [waiting.run_id])
    runs.claim_runs(live_runner(), [waiting.run_id])
    runs.checkpoint_runs([progress(waiting.run_id, 2, "New")])

    assert runs.checkpoint_runs([progress(waiting.run_id, 1, "Old")]) == frozenset()
    assert not runs.save_context(waiting.run_id, 1, context={"messages": []}, model="old")
    assert finishing.finish_run(waiting.run_id, 1, result("Old"), by="old") is None

    run = Run.objects.get()
    assert (run.state, run.partial_text, run.attempt, run.context) == ("running", "New", 2, None)
    assert not UsageEntry.objects.exists()
    assert finishing.finish_run(waiting.run_id, 2, result("New."), by="new") is not None
    assert runs.checkpoint_runs([progress(waiting.run_id, 2, "Late")]) == frozenset()
    run.refresh_from_db()
    assert (run.state, run.partial_text) == ("completed", "")
    assert Message.objects.get(id=waiting.answer_id).text == "New."
    assert UsageEntry.objects.count() == 1


def test_a_run_ends_once_whoever_ends_it(me: Actor, waiting: Exchange) -> None:
    runs.claim_runs(live_runner(), [waiting.run_id])
    ends = [
        partial(finishing.finish_run, waiting.run_id, 1, result(str(n), state), by=str(n))
        for n, state in enumerate([RunState.COMPLETED, RunState.CANCELLED, RunState.FAILED] * 2)
    ]
    events = [event for event in together(ends) if event is not None]
    assert len(events) == 1
    assert not isinstance(events[0], Exception)
    assert Message.objects.get(id=waiting.answer_id).text == events[0]["message"]["text"]
    terminal = [step["state"] for step in Run.objects.get().transitions if step["state"] not in ("queued", "running")]
    assert terminal == [events[0]["state"]]
    assert UsageEntry.objects.count() == 1


def test_cancelling_and_claiming_at_once_leaves_one_story(me: Actor) -> None:
    conversation = make_conversation(me)
    for _ in range(5):
        run_id = ask(me, conversation).run_id
        together([partial(runs.cancel_run, me, run_id), partial(runs.claim_runs, live_runner(), [run_id])])
        run = Run.objects.get(id=run_id)
        states = [step["state"] for step in run.transitions]
        if run.state == "cancelled":
            assert states == ["queued", "cancelled"]
        else:
            assert states == ["queued", "running"]
            assert run.cancel_requested_at is not None, "whoever runs it is told"


def test_a_runner_that_was_forgotten_says_so(waiting: Exchange) -> None:
    runner = live_runner(lease_s=-3_601)
    other = live_runner()
    assert runs.forget_dead_runners() == 1
    assert not runs.renew_lease(runner, 60)
    assert runs.renew_lease(other, 60)
    runs.register_runner(runner)
    assert runs.renew_lease(runner, 60)


def test_who_takes_over_knows_who_wrote(waiting: Exchange) -> None:
    owner = live_runner()
    runs.claim_runs(owner, [waiting.run_id])
    written = replace(progress(waiting.run_id, 1, "So far"), origin=Origin("r" * 300, "w" * 64, "t" * 64))
    assert runs.checkpoint_runs([written]) == {waiting.run_id}
    (again,) = runs.claim_runs(owner, [waiting.run_id])
    assert again.checkpoint.origin == Origin("r" * 200, "w" * 64, "t" * 64), "cut, so that others can be saved"
