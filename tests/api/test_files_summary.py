"""Summaries of files: made when asked for, section by section, once; shared with nobody; gone with the file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.accounts.types import Actor, ModelPolicy
from apps.core.errors import AppError, Conflict, NoReplica, NotFound, PermissionDenied, RateLimited
from apps.core.valkey import valkey
from apps.files import services, tasks
from apps.files.models import File, FileStage, FileState, StageName, StageState, Summary, SummarySection
from apps.files.pipeline import leases, sweep
from apps.files.pipeline.leases import LeaseLost
from apps.files.pipeline.removal import leftovers
from apps.files.summaries import work
from apps.files.summaries.plan import MAX_SECTIONS
from apps.files.summaries.requests import AT_WORK_PER_OWNER, ask_for_summary, get_summary
from inference.engines.fake_replica import FakeReplica, Options
from inference.engines.script import Script
from inference.protocol import Purpose, ReplicaState
from tests.concurrency.together import together
from tests.factories.accounts import make_actor
from tests.factories.files import drain, hurry
from tests.factories.passages import add_page, make_document, make_file
from tests.factories.people import Person, shown
from tests.factories.pooling import publish_pooler, scripted_server

pytestmark = pytest.mark.django_db(transaction=True)
FILLER = "The survey of the valley was written down by hand and kept in the archive of the county for many years. " * 14


@pytest.fixture
def actor() -> Actor:
    return make_actor()


@pytest.fixture
def model() -> Iterator[FakeReplica]:
    """A model that answers, and counts how often."""
    with scripted_server(Options(default=Script(say="The whole is about a river. [p. 2]"))) as (url, replica):
        publish_pooler("m", url, Purpose.CHAT)
        yield replica
    work.writer().close()


def valley(actor: Actor, pages: int = 6, *, name: str = "valley.pdf", mark: str = "") -> File:
    """Pages so long that a section holds two or three of them; each tells the model what to say of it."""
    texts = [
        f"# Chapter {n}\nsay: Chapter {n} is about bridge {n}.{mark} [p. {n}]\n{FILLER}" for n in range(1, pages + 1)
    ]
    return make_document(actor, texts, name=name)


def made(actor: Actor, file: File) -> dict[str, Any]:
    ask_for_summary(actor, file.id)
    drain(file.id, rounds=60)
    return get_summary(actor, file.id).as_json()


def test_a_file_is_summarised_by_its_sections_and_sentences_name_pages(actor: Actor, model: FakeReplica) -> None:
    file = valley(actor)
    assert get_summary(actor, file.id).state == "none"
    asked = ask_for_summary(actor, file.id)
    assert (asked.state, asked.model, asked.steps) == ("working", "m", 0)
    drain(file.id)
    summary = get_summary(actor, file.id).as_json()
    assert summary["state"] == "ready"
    assert summary["sentences"] == [{"text": "The whole is about a river.", "pages": [2], "matched": False}]
    texts = [section["text"] for section in summary["sections"]]
    assert len(texts) > 1
    assert texts[0] == "Chapter 1 is about bridge 1. [p. 1]"
    assert (summary["pages_covered"], summary["page_count"]) == (6, 6)
    assert summary["steps"] == summary["steps_done"] == model.requests == len(texts) + 1


def test_a_short_file_takes_one_request(actor: Actor, model: FakeReplica) -> None:
    summary = made(actor, make_document(actor, ["say: A note about keys. [p. 1]"]))
    assert (summary["steps"], model.requests) == (1, 1)
    assert summary["sentences"][0] == {"text": "A note about keys.", "pages": [1], "matched": False}


def test_a_summary_is_made_once(actor: Actor, model: FakeReplica) -> None:
    file = valley(actor)
    made(actor, file)
    asked = model.requests
    assert ask_for_summary(actor, file.id).state == "ready"
    drain(file.id)
    assert model.requests == asked


def test_another_model_makes_its_own(actor: Actor, model: FakeReplica) -> None:
    file = valley(actor)
    made(actor, file)
    asked = model.requests
    Summary.objects.update(model="gone", version="0")
    assert get_summary(actor, file.id).outdated
    assert made(actor, file)["model"] == "m"
    assert model.requests == asked, "the sections of this model were kept"
    SummarySection.objects.update(digest="of another")
    Summary.objects.update(version="0")
    made(actor, file)
    assert model.requests == 2 * asked


def test_pages_read_later_are_added_and_only_their_sections_are_made(actor: Actor, model: FakeReplica) -> None:
    file = valley(actor)
    made(actor, file)
    asked = model.requests
    add_page(file, 7, f"# Chapter 7\nsay: Chapter 7 is new. [p. 7]\n{FILLER * 2}")
    File.objects.filter(id=file.id).update(page_count=7)
    assert get_summary(actor, file.id).outdated
    summary = made(actor, file)
    assert not summary["outdated"]
    assert summary["pages_covered"] == 7
    assert asked < model.requests < 2 * asked


def test_after_a_kill_only_what_is_missing_is_made(actor: Actor, model: FakeReplica, monkeypatch: Any) -> None:
    monkeypatch.setattr(work, "AT_ONCE", 1)
    file = valley(actor)
    ask_for_summary(actor, file.id)
    kept = []

    def die(self: Any, section: Any, text: str, keep: Any = work._Making._keep) -> None:
        keep(self, section, text)
        kept.append(section)
        if len(kept) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(work._Making, "_keep", die)
        with pytest.raises(KeyboardInterrupt):
            tasks.summary(str(file.id))
    assert get_summary(actor, file.id).steps_done == 2
    tasks.summary(str(file.id))
    assert model.requests == 2, "its lease has not ended"
    hurry(file.id)
    drain(file.id)
    summary = get_summary(actor, file.id)
    assert summary.state == "ready"
    assert model.requests == summary.steps


def test_two_workers_do_not_make_a_section_twice(actor: Actor, model: FakeReplica) -> None:
    file = valley(actor)
    ask_for_summary(actor, file.id)
    together([lambda: tasks.summary(str(file.id))] * 4)
    drain(file.id)
    assert model.requests == get_summary(actor, file.id).steps


def test_a_worker_that_lost_its_lease_writes_nothing(actor: Actor, model: FakeReplica) -> None:
    file = valley(actor)
    ask_for_summary(actor, file.id)
    slow = leases.claim(file.id, StageName.SUMMARY)
    assert slow is not None
    hurry(file.id)
    drain(file.id)
    before = list(SummarySection.objects.order_by("id").values_list("id", "text"))
    Summary.objects.update(state="working")
    with pytest.raises(LeaseLost):
        work._make(slow, work.Lost())
    assert list(SummarySection.objects.order_by("id").values_list("id", "text")) == before


def test_the_work_is_done_in_slices(actor: Actor, model: FakeReplica, monkeypatch: Any) -> None:
    monkeypatch.setattr(work, "AT_ONCE", 1)
    monkeypatch.setattr(work, "SLICE_S", 0)
    file = valley(actor, 2)
    ask_for_summary(actor, file.id)
    tasks.summary(str(file.id))
    stage = FileStage.objects.get(file=file, name=StageName.SUMMARY)
    assert (stage.state, stage.failures) == (StageState.PENDING, 0)
    monkeypatch.setattr(work, "SLICE_S", 20)
    drain(file.id)
    assert get_summary(actor, file.id).state == "ready"


def test_a_very_long_file_is_bounded_and_says_what_it_covers(actor: Actor, model: FakeReplica) -> None:
    file = make_document(actor, [f"# Page {n}\n{FILLER}" for n in range(1, 121)])
    summary = made(actor, file)
    assert len(summary["sections"]) <= MAX_SECTIONS
    assert 0 < summary["pages_covered"] <= summary["page_count"] == 120


# ---------------------------------------------------------------- models


def test_without_a_model_it_says_so_at_once(actor: Actor) -> None:
    file = valley(actor, 1)
    with pytest.raises(NoReplica):
        ask_for_summary(actor, file.id)
    assert not Summary.objects.exists()


def test_the_policy_of_the_organization_holds(actor: Actor, model: FakeReplica) -> None:
    file = valley(actor, 1)
    for policy in (ModelPolicy(models=frozenset({"other"})), ModelPolicy(region="eu")):
        bound = Actor(actor.user_id, actor.organization_id, policy=policy)
        with pytest.raises(PermissionDenied):
            ask_for_summary(bound, file.id)
    assert model.requests == 0


def test_it_waits_for_a_model_and_is_given_up_after_long(actor: Actor, model: FakeReplica) -> None:
    file = valley(actor, 1)
    ask_for_summary(actor, file.id)
    publish_pooler("m", "http://127.0.0.1:9", Purpose.CHAT, state=ReplicaState.GONE)
    tasks.summary(str(file.id))
    summary = get_summary(actor, file.id)
    assert (summary.state, summary.waiting) == ("working", True)
    Summary.objects.update(asked_at=timezone.now() - work.PATIENCE - timedelta(seconds=1))
    hurry(file.id)
    tasks.summary(str(file.id))
    failed = get_summary(actor, file.id).as_json()
    assert (failed["state"], failed["error"]["code"]) == ("failed", "no_model")
    with pytest.raises(NoReplica):
        ask_for_summary(actor, file.id)


def test_what_a_model_refuses_fails_with_a_sentence(actor: Actor, model: FakeReplica) -> None:
    file = make_document(actor, ["refuse:400 A page."])
    failed = made(actor, file)
    assert (failed["state"], failed["error"]["code"]) == ("failed", "refused")
    assert "refused" in failed["error"]["message"]


def test_a_replica_that_breaks_off_is_asked_again(actor: Actor, model: FakeReplica) -> None:
    file = valley(actor)
    model.control({"fault": "die", "at": 2})
    ask_for_summary(actor, file.id)
    tasks.summary(str(file.id))
    assert get_summary(actor, file.id).state == "working"
    hurry(file.id)
    drain(file.id)
    summary = get_summary(actor, file.id)
    assert summary.state == "ready"
    assert model.requests == summary.steps + 1


def test_what_kills_its_workers_is_given_up(actor: Actor, model: FakeReplica) -> None:
    file = valley(actor, 1)
    ask_for_summary(actor, file.id)
    for _ in range(leases.MAX_FAILURES):
        assert leases.claim(file.id, StageName.SUMMARY) is not None
        hurry(file.id)
    tasks.summary(str(file.id))
    assert get_summary(actor, file.id).as_json()["error"]["code"] == "crashed"
    assert File.objects.get(id=file.id).state == FileState.READY, "the file itself is as it was"


def test_a_lost_message_is_sent_again(actor: Actor, model: FakeReplica) -> None:
    file = valley(actor, 1)
    ask_for_summary(actor, file.id)
    FileStage.objects.update(hinted_at=timezone.now() - 2 * sweep.PATIENCE)
    sweep.sweep()
    assert any("files.summary" in str(message) for message in valkey().lrange("embed", 0, -1))


# ---------------------------------------------------------------- who, and for how long


def test_the_same_content_of_the_same_owner_is_summarised_once(actor: Actor, model: FakeReplica) -> None:
    first = made(actor, valley(actor))
    asked = model.requests
    copy = valley(actor, name="copy.pdf")
    again = made(actor, copy)
    assert model.requests == asked
    assert again == first
    services.delete_file(actor, Summary.objects.exclude(file=copy).get().file_id)
    assert get_summary(actor, copy.id).as_json() == first, "its rows are its own"


def test_nothing_is_shared_between_owners(actor: Actor, model: FakeReplica) -> None:
    made(actor, valley(actor))
    asked = model.requests
    stranger = make_actor()
    made(stranger, valley(stranger))
    assert model.requests == 2 * asked


def test_of_others_nobody_sees_or_asks_for_anything(actor: Actor, model: FakeReplica) -> None:
    file = valley(actor, 1)
    for call in (get_summary, ask_for_summary):
        with pytest.raises(NotFound):
            call(make_actor(), file.id)


def test_deleting_a_file_ends_its_summary_and_leaves_nothing(actor: Actor, model: FakeReplica) -> None:
    file = valley(actor)
    ask_for_summary(actor, file.id)
    tasks.summary(str(file.id))
    services.delete_file(actor, file.id)
    hurry(file.id)
    tasks.summary(str(file.id))
    tasks.purge(str(file.id))
    assert leftovers(file.id) == {}
    assert not SummarySection.objects.exists()


@pytest.mark.parametrize(
    ("state", "said"),
    [("processing", "still being read"), ("needs_password", "password"), ("failed", "could not be read")],
)
def test_a_file_that_was_not_read_cannot_be_summarised(actor: Actor, model: FakeReplica, state: str, said: str) -> None:
    with pytest.raises(Conflict, match=said):
        ask_for_summary(actor, make_file(actor, state=state).id)


def test_few_at_a_time_for_each_owner(actor: Actor, model: FakeReplica) -> None:
    files = [valley(actor, 1, mark=str(n)) for n in range(AT_WORK_PER_OWNER + 1)]
    for file in files[:-1]:
        ask_for_summary(actor, file.id)
        assert ask_for_summary(actor, file.id).state == "working"
    with pytest.raises(RateLimited):
        ask_for_summary(actor, files[-1].id)
    drain(files[0].id)
    assert ask_for_summary(actor, files[-1].id).state == "working"


def test_asked_twice_at_once_it_is_begun_once(actor: Actor, model: FakeReplica) -> None:
    file = valley(actor, 1)
    answers = together([lambda: ask_for_summary(actor, file.id).state] * 4)
    assert not [answer for answer in answers if isinstance(answer, AppError)]
    assert FileStage.objects.filter(name=StageName.SUMMARY).count() == 1


def test_over_http(model: FakeReplica) -> None:
    person = Person()
    file = valley(person.actor, 1)
    path = f"/api/files/{file.id}/summary"
    assert shown(person.get(path))["state"] == "none"
    assert shown(person.post(path), 202)["state"] == "working"
    drain(file.id)
    assert shown(person.post(path), 200)["state"] == "ready"
    assert shown(person.get(path))["sentences"][0]["pages"] == [1]
