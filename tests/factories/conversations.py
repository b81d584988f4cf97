"""Conversations, questions and finished answers, made through the real services; no runner needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from apps.accounts.types import Actor
from apps.conversations.services import conversations, finishing, posting, runs
from apps.conversations.services.admission import forget_models
from apps.conversations.types import RunResult, RunState
from inference.protocol import ReplicaState
from tests.factories.inference import publish_replica


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question, its answer and the run between them."""

    conversation_id: UUID
    question_id: UUID
    answer_id: UUID
    run_id: UUID


def serve_model(model: str = "fake", *, slots: int = 100, state: ReplicaState = ReplicaState.READY) -> None:
    """A model that takes runs, seen at once."""
    publish_replica(model, slots=slots, state=state)
    forget_models()


def make_conversation(actor: Actor, *, title: str = "") -> UUID:
    view, _ = conversations.create_conversation(actor, title=title)
    id: UUID = view["id"]
    return id


def ask(
    actor: Actor,
    conversation_id: UUID,
    text: str = "Why is the sky blue?",
    *,
    parent_id: UUID | None = None,
    client_id: UUID | None = None,
    key: str | None = None,
) -> Exchange:
    """Post a question; its answer waits for a runner."""
    serve_model()
    question = posting.Question(conversation_id, client_id or uuid4(), text, parent_id, (), "auto")
    return _exchange(posting.post_message(actor, question, key=key).view)


def _exchange(view: dict[str, Any]) -> Exchange:
    run = view["run"]
    return Exchange(run["conversation_id"], run["question_id"], run["answer_id"], run["id"])


def claim(run_id: UUID, *, runner: UUID | None = None) -> int:
    """Take a run as a runner would; the attempt."""
    runner = runner or live_runner()
    claimed = runs.claim_runs(runner, [run_id])
    assert len(claimed) == 1
    return claimed[0].attempt


def live_runner(*, lease_s: float = 60) -> UUID:
    """A runner with a lease; a negative one has ended."""
    runner = runs.register_runner()
    runs.renew_lease(runner, lease_s)
    return runner


def finish(run_id: UUID, text: str = "Rayleigh scattering.", *, state: RunState = RunState.COMPLETED) -> None:
    """Claim a run and end it with a text."""
    reason = {RunState.COMPLETED: "stop", RunState.INCOMPLETE: "length", RunState.CANCELLED: "cancelled"}.get(state)
    attempt = claim(run_id)
    result = RunResult(state, text, reason, prompt_tokens=9, completion_tokens=4, model="fake", replica="fake-1", seq=3)
    assert finishing.finish_run(run_id, attempt, result, by="test") is not None


def make_exchange(
    actor: Actor,
    conversation_id: UUID | None = None,
    text: str = "Why is the sky blue?",
    answer: str = "Rayleigh scattering.",
    *,
    parent_id: UUID | None = None,
) -> Exchange:
    """A question with its finished answer."""
    made = ask(actor, conversation_id or make_conversation(actor), text, parent_id=parent_id)
    finish(made.run_id, answer)
    return made
