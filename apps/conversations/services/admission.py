"""Whether a new run may start: which model it means, and whether the waiting line has room.

Checked before anything is written, so that an overloaded system answers with its own HTTP status, the reason
and how long to wait. The shared line decides (`line`); while there is none, the runs in Postgres are counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import redis
import structlog
from django.conf import settings
from django.db import connection

from apps.accounts.types import Actor
from apps.conversations.metrics import REJECTIONS
from apps.conversations.models import Run
from apps.conversations.services.line import enter_line, leave_line, runs_at_most, standing_of
from apps.conversations.services.registry import known_capacity
from apps.conversations.services.routing import Choice, choose_model
from apps.conversations.types import ACTIVE, RunState
from apps.core.errors import Overloaded, RateLimited
from apps.core.ids import new_id
from apps.core.valkey import valkey
from inference.admission import Lane, Policy, Tier
from inference.protocol import ModelInfo

log = structlog.get_logger(__name__)
_UNMEASURED_RUN_S = 5.0
_MEAN_RUN_KEY = "stats:mean_run_s"
_MEASURE_EVERY_S = 1.0
_LINE_AT_MOST = Policy().max_waiting * len(Lane) * len(Tier)
# Plain SQL, for every post asks it: the query builder took a quarter of a web process's time.
_ACTIVE = """
    SELECT count(*) FILTER (WHERE model = %s), count(*) FILTER (WHERE user_id = %s)
    FROM conversations_run WHERE state IN ('queued', 'running')
"""
_LINE = """
    SELECT count(*) FILTER (WHERE state = 'running'),
        count(*) FILTER (WHERE state = 'queued' AND (created_at, id) < (%s, %s))
    FROM conversations_run WHERE model = %s AND state IN ('queued', 'running')
"""


class _Measured:
    """When this process measured a run last."""

    at = 0.0


@dataclass(frozen=True, slots=True)
class Room:
    """How many runs of a model may be active at once: `places` in all, those in `slots` at work, `own` of one user."""

    model: ModelInfo
    slots: int
    places: int
    own: int


@dataclass(slots=True)
class Place:
    """What admission gives: a model, and a place for the run `run_id` that is about to be written. Given up with the
    end of the `with`, unless it was kept. `in_line`: the shared line has it."""

    choice: Choice
    run_id: UUID
    in_line: bool
    kept: bool = False

    def keep(self) -> None:
        """The run has been written, and the place is its own."""
        self.kept = True

    def __enter__(self) -> Place:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.in_line and (kind is not None or not self.kept):
            leave_line(self.run_id)


def admit(actor: Actor, requested: str, text: str = "", *, history: Callable[[], int] | None = None) -> Place:
    """Accept a run of `requested` for now, or say why not and how long to wait. `history`: see `choose_model`.

    Raises ModelNotFound, PermissionDenied, NoReplica, Overloaded, RateLimited or TooLarge. A model that is still
    loading accepts a short line.
    """
    choice = choose_model(requested, text, policy=actor.policy, history=history)
    model, run_id = choice.model, new_id()
    with connection.cursor() as cursor:
        cursor.execute(_ACTIVE, [model.id, actor.user_id])
        waiting, own = cursor.fetchone()
    check_room(room_of(model, actor, in_line=True), waiting=waiting, own=own)
    in_line = enter_line(actor, model, run_id, text=text, max_tokens=None)
    if not in_line:
        check_room(room_of(model, actor, in_line=False), waiting=waiting, own=own)
    return Place(choice, run_id, in_line)


def room_of(model: ModelInfo, actor: Actor, *, in_line: bool) -> Room:
    """The shared line has bounds of its own; the count is the last resort there, should places lapse unused."""
    slots = max(1, known_capacity(model.id, actor.policy.region).slots)
    places = slots * (1 + settings.RUN_QUEUE_PER_SLOT) + (_LINE_AT_MOST if in_line else 0)
    return Room(model, slots, places, runs_at_most(actor))


def check_room(room: Room, *, waiting: int, own: int) -> None:
    """Whether one more fits beside `waiting` active runs of the model and `own` ones of the user.

    Raises Overloaded or RateLimited.
    """
    if own >= room.own:
        REJECTIONS.labels(room.model.id, "user_limit").inc()
        raise RateLimited(
            f"You have {own} answers in progress, which is the limit. Wait for one to end or stop one.",
            retry_after_s=_mean_run_s(),
            reason="user_limit",
        )
    if waiting >= room.places:
        REJECTIONS.labels(room.model.id, "queue_full").inc()
        wait = max(1.0, (waiting - room.slots + 1) * _mean_run_s() / room.slots / 2)
        raise Overloaded(
            f"All {room.slots} places of {room.model.name} are taken and {waiting - room.slots} requests wait. "
            "Try again later.",
            retry_after_s=round(wait, 1),
            reason="queue_full",
        )


def _mean_run_s() -> float:
    """The measured mean time of a run, kept by the runners."""
    try:
        value = valkey().get(_MEAN_RUN_KEY)
    except redis.RedisError:
        value = None
    return float(value) if isinstance(value, bytes) else _UNMEASURED_RUN_S


def measure_run(seconds: float) -> None:
    """Fold a finished run's time into the mean; one run a second is enough, and a lost update only slows it down."""
    now = time.monotonic()
    if now - _Measured.at < _MEASURE_EVERY_S:
        return
    _Measured.at = now
    try:
        value = valkey().get(_MEAN_RUN_KEY)
        mean = float(value) if isinstance(value, bytes) else seconds
        valkey().set(_MEAN_RUN_KEY, mean + 0.1 * (seconds - mean), ex=3600)
    except redis.RedisError:
        return


def place_in_line(run: Run) -> dict[str, Any]:
    """`queue_position` (1 is next) and `estimated_wait_s` of a run that waits; None of any other.

    Where there is no shared line the wait is reckoned as for a full one: until a place is free after the active runs
    before this one, which on the mean are half done.
    """
    if run.state in ACTIVE and (standing := standing_of(run.id)):
        return {"queue_position": standing.position, "estimated_wait_s": standing.estimated_wait_s}
    if run.state != RunState.QUEUED:
        return {"queue_position": None, "estimated_wait_s": None}
    slots = max(1, known_capacity(run.model).slots)
    with connection.cursor() as cursor:
        cursor.execute(_LINE, [run.created_at, run.id, run.model])
        running, earlier = cursor.fetchone()
    wait = max(0, running + earlier - slots + 1) * _mean_run_s() / slots / 2
    return {"queue_position": earlier + 1, "estimated_wait_s": round(wait, 1)}
