"""Workers killed again and again while documents are read: what is lost, what is there twice, how long work lies still.

`run` uploads, kills and waits; `check` compares what is stored with what was sent. Documents are short ones of one
passage a page, each with a text of its own, so that what ought to be there is known.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.utils import timezone

from apps.files import tasks
from apps.files.models import File, FileStage, FileState, Page, Passage, StageState
from tests.factories import documents
from tests.factories.files import Caller
from tests.factories.workers import Worker

PAGES = 3
_LOOK_S = 0.15
_OPEN = (StageState.PENDING, StageState.RUNNING)


@dataclass(frozen=True, slots=True)
class Plan:
    """`window` documents are under way at a time. Every `whole`th kill takes a whole worker, the others the process
    that does its work. `patience_s`: how long nothing may move before it is given up."""

    files: int
    kills: int
    lease_s: float
    sweep_s: float
    window: int = 12
    whole: int = 10
    patience_s: float = 180.0


@dataclass
class Report:
    kills: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    @property
    def redelivery_s(self) -> float:
        return max(self.waits, default=0.0)

    def __str__(self) -> str:
        waits = sorted(self.waits)
        middle = waits[len(waits) // 2] if waits else 0.0
        lines = [
            f"{self.kills} kills, {len(waits)} stages stood: {middle:.1f} s (p50), {self.redelivery_s:.1f} s (most)",
            f"lost {len(self.lost)}, doubled {len(self.doubled)}",
        ]
        return "\n".join([*lines, *self.lost[:5], *self.doubled[:5]])


class Still:
    """How long work that a kill interrupted lies still: from the kill until the stage's next attempt.

    A stage that runs was alive when its lease was renewed last, so it was the first kill after that, at the earliest,
    that hit it: this errs on the long side. A stage that waits in a queue for its first attempt is not counted.
    """

    def __init__(self, lease_s: float) -> None:
        self._lease = timedelta(seconds=lease_s)
        self._alive: dict[tuple[UUID, str], tuple[int, datetime]] = {}
        self.kills: list[datetime] = []
        self.waits: list[float] = []

    def look(self) -> None:
        now = timezone.now()
        rows = FileStage.objects.values_list("file_id", "name", "attempt", "state", "lease_until")
        for file_id, name, attempt, state, lease_until in rows:
            key = (file_id, name)
            before = self._alive.get(key)
            if before is not None and attempt > before[0]:
                self._taken_up(before[1], now)
                del self._alive[key]
            if state == StageState.RUNNING and lease_until is not None:
                self._alive[key] = (attempt, lease_until - self._lease)
            else:
                self._alive.pop(key, None)

    def _taken_up(self, alive: datetime, now: datetime) -> None:
        hit = next((kill for kill in self.kills if kill >= alive), None)
        if hit is not None:
            self.waits.append((now - hit).total_seconds())


def run(caller: Caller, plan: Plan, start: Callable[[int], Worker]) -> tuple[Report, list[str]]:
    """Returns what was seen, and the ids of all documents that were accepted. `start` begins worker 0 or 1."""
    still, report, sent = Still(plan.lease_s), Report(), list[str]()
    chance = random.Random(plan.kills)
    workers = [start(0), start(1)]
    sweep_at = time.monotonic()
    progress, moved_at = None, time.monotonic()
    try:
        while True:
            if len(sent) < plan.files and _under_way(sent) < plan.window:
                number = len(sent) + 1
                sent.append(caller.upload(f"{number}.pdf", documents.short_pdf(PAGES, seed=number))["id"])
            still.look()
            if report.kills < plan.kills and len(sent) * plan.kills >= report.kills * plan.files and _busy():
                time.sleep(chance.random() * 0.3)
                _kill(workers, report.kills, plan, start)
                still.kills.append(timezone.now())
                report.kills += 1
            if time.monotonic() >= sweep_at:
                tasks.sweep()
                sweep_at = time.monotonic() + plan.sweep_s
            if len(sent) == plan.files and not FileStage.objects.filter(state__in=_OPEN).exists():
                break
            now = (
                len(sent),
                report.kills,
                FileStage.objects.filter(state=StageState.DONE).count(),
                Page.objects.count(),
            )
            if now != progress:
                progress, moved_at = now, time.monotonic()
            if time.monotonic() - moved_at > plan.patience_s:
                break
            time.sleep(_LOOK_S)
    finally:
        for worker in workers:
            worker.kill9()
    report.waits = still.waits
    return report, sent


def _under_way(sent: Sequence[str]) -> int:
    return File.objects.filter(id__in=sent, state=FileState.PROCESSING).count()


def _busy() -> bool:
    return FileStage.objects.filter(state=StageState.RUNNING, lease_until__gt=timezone.now()).exists()


def _kill(workers: list[Worker], number: int, plan: Plan, start: Callable[[int], Worker]) -> None:
    which = number % 2
    if number % plan.whole == plan.whole // 2:
        workers[which].kill9()
        workers[which] = start(which)
    else:
        workers[which].kill_pool()


# Checking

_POSTINGS = """
    SELECT passage.file_id FROM files_passage AS passage
    LEFT JOIN files_posting AS posting ON posting.passage_id = passage.id AND posting.file_id = passage.file_id
    WHERE passage.file_id = ANY(%s)
    GROUP BY passage.id HAVING coalesce(sum(posting.tf), 0) <> passage.length
"""
_STRAY = """
    SELECT DISTINCT file_id FROM files_posting AS posting
    WHERE NOT EXISTS (SELECT FROM files_passage AS passage WHERE passage.id = posting.passage_id)
"""


def check(sent: Sequence[str], report: Report, *, pages: int = PAGES) -> None:
    """Every accepted document is ready, with each page and passage once, and with the postings of each passage."""
    for file_id in sent:
        file = File.objects.get(id=file_id)
        numbers = list(
            Page.objects.filter(file=file, state="ready").order_by("number").values_list("number", flat=True)
        )
        cut = list(Passage.objects.filter(file=file).order_by("page_number").values_list("page_number", flat=True))
        if file.state != FileState.READY or set(numbers) != set(range(1, pages + 1)) or not set(numbers) <= set(cut):
            report.lost.append(f"{file_id}: {file.state} {file.error_code}, pages {numbers}, passages of pages {cut}")
        if len(numbers) > pages or len(cut) > pages or (file.page_count or 0) > pages:
            report.doubled.append(f"{file_id}: pages {numbers}, passages of pages {cut}")
    unfinished = FileStage.objects.filter(file_id__in=sent, state__in=_OPEN).values_list("file_id", "name")
    report.lost += [f"{file_id}: {name} was never finished" for file_id, name in unfinished]
    unembedded = Passage.objects.filter(file_id__in=sent, embedding=None).values_list("file_id", flat=True)
    report.lost += [f"{file_id}: a passage without its vector" for file_id in unembedded]
    report.doubled += [f"{file_id}: postings that do not add up" for file_id in _files(_POSTINGS, list(sent))]
    report.doubled += [f"{file_id}: postings of no passage" for file_id in _files(_STRAY)]


def _files(sql: str, *parameters: Any) -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [row[0] for row in cursor.fetchall()]
