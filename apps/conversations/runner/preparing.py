"""A run's prompt before it has a place: the branch, what its files hold, and whether tables are to be consulted.

Leaves to `context` what the prompt looks like, and to `consulting` the questions to tables.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from django.conf import settings

from apps.conversations.runner.consulting import NEEDS, Consultation, Consulted, Note
from apps.conversations.runner.context import Context, build_context
from apps.conversations.runner.fitting import fit_context
from apps.conversations.runner.gathering import (
    actor_of_run,
    find_older_turns,
    find_tables,
    search_files,
)
from apps.conversations.runner.patience import until_db
from apps.conversations.services import runs
from apps.conversations.types import ClaimedRun, Turn
from apps.core.db import in_db
from apps.files.public import SearchResult
from inference.client import ReplicaPool
from inference.protocol import ModelInfo


@dataclass(slots=True)
class Prepared:
    """`consultation` is to be held before the answer; `fit` makes the context with what came of it."""

    turns: tuple[Turn, ...]
    context: Context
    fit: Callable[[Consulted | None], Awaitable[Context]]
    consultation: Consultation | None = None

    @property
    def growth(self) -> int:
        """Tokens that the prompt may grow by, once it has a place."""
        room = max(0, self.context.limit - self.context.estimated)
        return min(room, self.consultation.most_tokens) if self.consultation else 0


async def prepare(run: ClaimedRun, model: ModelInfo, pool: ReplicaPool, *, begun: bool, note: Note) -> Prepared:
    """`begun`: some of the answer was written, by an earlier attempt, whose look into tables holds for this one too.
    `note` is told of tokens used."""
    turns: tuple[Turn, ...] = ()
    found: SearchResult | None = None
    if (question_id := run.question_id) is not None:
        turns = await until_db(lambda: in_db(runs.load_turns, run.conversation_id, question_id))
        found = await search_files(run, turns)
    queries = NEEDS in _abilities(pool, model)
    if found is not None and not queries:
        found = replace(found, left_out=tuple(file.unasked() for file in found.left_out))
    build = partial(
        build_context,
        run.params,
        run.prompt,
        turns,
        context_length=model.context_length or 2_048,
        max_output=settings.RUN_MAX_OUTPUT_TOKENS,
    )
    older = await find_older_turns(run, turns, build(found=found))

    async def fit(consulted: Consulted | None) -> Context:
        given = replace(found, looked_up=tuple(consulted.sources)) if found and consulted else found
        context = await fit_context(
            lambda density: build(found=given, density=density, older=older),
            lambda messages: pool.count_tokens(model.id, messages, run.region),
        )
        return replace(context, tables=consulted.view() if consulted else None)

    kept = Consulted.read(await until_db(lambda: in_db(runs.load_context, run.id))) if run.attempt > 1 else None
    prepared = Prepared(turns, await fit(kept), fit)
    if found is None or kept is not None or begun or not queries:
        return prepared
    if cards := await find_tables(run, turns):
        prepared.consultation = Consultation(actor_of_run(run), cards, found, limit=prepared.context.limit, note=note)
    return prepared


def _abilities(pool: ReplicaPool, model: ModelInfo) -> frozenset[str]:
    return next((one.capabilities for one in pool.candidates() if one.id == model.id), frozenset())
