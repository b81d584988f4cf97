"""Whether a new run may start: which model it means, and whether the waiting line has room.

Checked before anything is written, so that an overloaded system answers with its own HTTP status, the reason
and how long to wait. The runner's replica pool decides again with exact numbers.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import redis
import structlog
from django.conf import settings
from django.db import connection

from apps.accounts.types import Actor
from apps.conversations.metrics import REJECTIONS
from apps.conversations.models import Run
from apps.conversations.types import RunState
from apps.core.errors import ModelNotFound, NoReplica, Overloaded, RateLimited
from apps.core.valkey import valkey
from inference.client import AUTO, read_capacity, read_models
from inference.protocol import Capacity, ModelInfo, ModelState

log = structlog.get_logger(__name__)
_FRESH_S = 0.5
_WAIT_FOR_MODEL_S = 15
_UNMEASURED_RUN_S = 5.0
_MEAN_RUN_KEY = "stats:mean_run_s"
_MEASURE_EVERY_S = 1.0
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


@dataclass(slots=True)
class _Registry:
    """The registry as this process read it last, half a second old at most, and when it measured a run."""

    models: tuple[ModelInfo, ...] = ()
    capacity: dict[str, Capacity] | None = None
    read_at: float = 0.0
    measured_at: float = 0.0


_registry = _Registry()


def known_models() -> tuple[ModelInfo, ...]:
    """Every model of the registry; the last known ones while Valkey is away."""
    now = time.monotonic()
    if now - _registry.read_at > _FRESH_S:
        try:
            _registry.models = read_models(valkey())
            _registry.capacity = {}
        except redis.RedisError as error:
            log.warning("models.unread", error=type(error).__name__)
        _registry.read_at = now
    return _registry.models


def forget_models() -> None:
    """Read the registry anew at the next question, e.g. between tests."""
    _registry.read_at = 0.0


def _capacity(model: str) -> Capacity:
    cached = _registry.capacity if _registry.capacity is not None else {}
    if model not in cached:
        cached[model] = read_capacity(valkey(), model)
        _registry.capacity = cached
    return cached[model]


def resolve_model(requested: str) -> ModelInfo:
    """The model a request names. Raises ModelNotFound for a name we do not serve, NoReplica when none is there."""
    models = known_models()
    if not models:
        raise NoReplica("No model is running yet. Try again in a moment.", retry_after_s=_WAIT_FOR_MODEL_S)
    if requested == AUTO:
        return next((m for m in models if m.state is ModelState.READY), models[0])
    found = next((m for m in models if m.id == requested), None)
    if found is None:
        names = ", ".join([AUTO, *(m.id for m in models)])
        raise ModelNotFound(f"There is no model named {requested[:80]!r}. Choose one of: {names}.")
    return found


@dataclass(frozen=True, slots=True)
class Room:
    """How many runs of a model may be active at once: `places` in all, those in `slots` at work."""

    model: ModelInfo
    slots: int
    places: int


def admit(actor: Actor, requested: str) -> ModelInfo:
    """Accept a run of `requested` for now, or say why not and how long to wait.

    Raises ModelNotFound, NoReplica, Overloaded or RateLimited. A model that is still loading accepts a short line.
    """
    model = choose_model(requested)
    with connection.cursor() as cursor:
        cursor.execute(_ACTIVE, [model.id, actor.user_id])
        waiting, own = cursor.fetchone()
    check_room(room_of(model), waiting=waiting, own=own)
    return model


def choose_model(requested: str) -> ModelInfo:
    """The model a run would use. Raises ModelNotFound or NoReplica."""
    model = resolve_model(requested)
    if model.state is ModelState.UNAVAILABLE:
        REJECTIONS.labels(model.id, "no_replica").inc()
        raise NoReplica(
            f"{model.name} is not running. An operator can see why in the console; you can choose another model.",
            retry_after_s=_WAIT_FOR_MODEL_S,
        )
    return model


def room_of(model: ModelInfo) -> Room:
    try:
        slots = max(1, _capacity(model.id).slots)
    except redis.RedisError:
        slots = 1
    return Room(model, slots, slots * (1 + settings.RUN_QUEUE_PER_SLOT))


def check_room(room: Room, *, waiting: int, own: int) -> None:
    """Whether one more fits beside `waiting` active runs of the model and `own` ones of the user.

    Raises Overloaded or RateLimited.
    """
    if own >= settings.RUNS_PER_USER:
        REJECTIONS.labels(room.model.id, "user_limit").inc()
        raise RateLimited(
            f"You have {own} answers in progress, which is the limit. Wait for one to end or stop one.",
            retry_after_s=_mean_run_s(),
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
    if now - _registry.measured_at < _MEASURE_EVERY_S:
        return
    _registry.measured_at = now
    try:
        value = valkey().get(_MEAN_RUN_KEY)
        mean = float(value) if isinstance(value, bytes) else seconds
        valkey().set(_MEAN_RUN_KEY, mean + 0.1 * (seconds - mean), ex=3600)
    except redis.RedisError:
        return


def place_in_line(run: Run) -> dict[str, Any]:
    """`queue_position` (1 is next) and `estimated_wait_s` of a run that waits to be claimed; None of any other.

    The wait is reckoned as for a full line: until a place is free after the active runs before this one, which on the
    mean are half done.
    """
    if run.state != RunState.QUEUED:
        return {"queue_position": None, "estimated_wait_s": None}
    known_models()  # what is remembered of its slots is fresh then
    try:
        slots = max(1, _capacity(run.model).slots)
    except redis.RedisError:
        slots = 1
    with connection.cursor() as cursor:
        cursor.execute(_LINE, [run.created_at, run.id, run.model])
        running, earlier = cursor.fetchone()
    wait = max(0, running + earlier - slots + 1) * _mean_run_s() / slots / 2
    return {"queue_position": earlier + 1, "estimated_wait_s": round(wait, 1)}
