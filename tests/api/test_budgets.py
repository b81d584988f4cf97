"""Budgets that an operator wrote into a file, as callers meet them: who is refused, what is said, and who is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from apps.accounts.models import Organization
from apps.conversations import checkup
from apps.conversations.models import Run
from apps.conversations.services import line
from inference.admission import Tier, read_policy
from tests.factories.accounts import make_actor, make_colleague, make_user
from tests.factories.admission import a_replica
from tests.factories.conversations import make_conversation, serve_model
from tests.factories.line import Runner
from tests.factories.people import Person, shown
from tests.services import Services

pytestmark = pytest.mark.django_db
Budgets = Callable[[str], None]


@pytest.fixture
def budgets(tmp_path: Path, settings: Any) -> Iterator[Budgets]:
    """Writes the file and reads it as a starting process does. There is room for everybody."""
    serve_model(slots=100)
    Runner(a_replica("fake-1", model="fake", slots=100, kv=10_000_000))

    def put_in_force(text: str) -> None:
        settings.BUDGETS = tmp_path / "budgets.yaml"
        settings.BUDGETS.write_text(text)
        settings.ADMISSION_POLICY = read_policy(settings.BUDGETS)
        line._gate.cache_clear()

    yield put_in_force
    line._gate.cache_clear()


def somebody(tier: Tier = Tier.FREE) -> Person:
    user = make_user()
    Organization.objects.filter(id=user.organization_id).update(tier=tier.value)
    user.refresh_from_db()
    return Person(make_actor(user))


def colleague(of: Person) -> Person:
    return Person(make_actor(make_colleague(of.actor)))


def ask(person: Person, text: str = "Why?") -> Any:
    body = {"client_id": str(uuid4()), "text": text, "model": "fake"}
    return person.post(f"/api/conversations/{make_conversation(person.actor)}/messages", body)


def refused(response: Any, reason: str) -> str:
    """What is said of a refusal for this reason, with the time after which it is worth asking again."""
    problem = shown(response, 429)
    assert (problem["code"], problem["reason"]) == ("rate_limited", reason)
    assert int(response.headers["Retry-After"]) >= 1
    return str(problem["detail"])


def test_an_organization_has_so_many_answers_in_progress_and_another_is_untouched(budgets: Budgets) -> None:
    budgets("free:\n  organization: {runs: 2}\n")
    me = somebody()
    assert ask(me).status_code == 201
    assert ask(colleague(me)).status_code == 201
    before = Run.objects.count()
    assert "as many answers in progress as it may, 2" in refused(ask(me), "organization_limit")
    refused(ask(colleague(me)), "organization_limit")
    assert Run.objects.count() == before, "nothing of a refused question is kept"
    assert ask(somebody()).status_code == 201


def test_an_organization_has_so_many_tokens_a_second(budgets: Budgets) -> None:
    budgets("burst_s: 10\nfree:\n  organization: {tokens_per_s: 100}\n")
    me, other = somebody(), somebody()
    said = ""
    for _ in range(20):
        if (response := ask(me, "word " * 300)).status_code != 201:
            said = refused(response, "organization_tokens")
            break
    assert "100 tokens a second" in said
    refused(ask(colleague(me), "word " * 300), "organization_tokens")
    assert ask(other, "word " * 300).status_code == 201


def test_tiers_differ(budgets: Budgets) -> None:
    budgets("free:\n  user: {runs: 1}\nenterprise:\n  user: {runs: 3}\n")
    free, enterprise = somebody(), somebody(Tier.ENTERPRISE)
    assert [ask(free).status_code for _ in range(2)] == [201, 429]
    assert [ask(enterprise).status_code for _ in range(4)] == [201, 201, 201, 429]
    assert "You have 3 answers in progress" in refused(ask(enterprise), "user_limit")


def test_a_persons_tokens_are_their_own(budgets: Budgets) -> None:
    budgets("burst_s: 1\nfree:\n  user: {tokens_per_s: 10}\n")
    me = somebody()
    assert ask(me).status_code == 201
    assert "10 tokens a second" in refused(ask(me), "user_tokens")
    assert ask(colleague(me)).status_code == 201


def test_without_a_line_a_persons_answers_are_still_counted(
    budgets: Budgets, settings: Any, services: Services
) -> None:
    budgets("plus:\n  user: {runs: 2}\n")
    settings.RUN_QUEUE_PER_SLOT = 100
    services.valkey.call("FLUSHALL")
    serve_model(slots=10)
    person = somebody(Tier.PLUS)
    assert [ask(person).status_code for _ in range(3)] == [201, 201, 429]


def test_the_installation_says_which_budgets_are_in_force(budgets: Budgets) -> None:
    budgets("free:\n  organization: {runs: 7, tokens_per_s: 40}\n")
    found = next(finding for finding in checkup.check() if finding.name == "budgets")
    assert "budgets.yaml" in found.found
    assert "organization 7 answers, 40 tokens a second" in found.found
