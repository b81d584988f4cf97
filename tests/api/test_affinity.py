"""Runs whose prompts begin alike meet at the replica that has read the beginning."""

from __future__ import annotations

import pytest

from apps.accounts.types import Actor
from apps.conversations.models import Run
from apps.conversations.services.api_runs import ApiCall, start_api_run
from apps.conversations.services.handoff import offer
from apps.conversations.types import RunParams
from inference.protocol import ChatMessage
from tests.factories.accounts import make_actor
from tests.factories.inference import publish_replica
from tests.factories.runner import execute

pytestmark = pytest.mark.django_db(transaction=True)
CLERK, GUIDE = ("You are a careful clerk. " * 100, "You are a cheerful guide. " * 100)
A, B = "fake=fake://a", "fake=fake://b"


def answered(actor: Actor, instructions: str, question: str, *urls: str) -> Run:
    publish_replica()
    messages = (ChatMessage("system", instructions), ChatMessage("user", f"{question} n:3"))
    started = start_api_run(actor, ApiCall("fake", messages, RunParams()))
    offer("interactive", started.run_id)
    run = execute(started.run_id, *urls)
    assert run.state == "completed"
    return run


def test_api_runs_with_the_same_instructions_meet() -> None:
    actor = make_actor()
    assert answered(actor, CLERK, "Who?", B).replica == "fake@b"
    assert answered(actor, GUIDE, "Who?", A, B).replica == "fake@a", "where both are idle, the first by name"
    assert answered(actor, CLERK, "When?", A, B).replica == "fake@b"
    assert answered(make_actor(), CLERK, "When?", A, B).replica == "fake@a", "another organization has another cache"
