"""How long after its upload a file could be searched: its first page, and all that could be read.

Noted once a file, when it settles, from the times that its pages carry. The rows answer for the recent ones; counters
that only grow, as Prometheus wants them, are kept in Valkey for all workers together and are told by any web process.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from itertools import accumulate
from math import inf
from typing import cast

import redis
from django.db import connection, transaction
from django.db.models import Max, Min
from django.utils import timezone

from apps.core.valkey import valkey
from apps.files.models import File, Page
from apps.files.types import FIRST_PAGE, WHOLE_FILE, FreshnessCounts, RecentFreshness

BUCKETS_S = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1_280.0)
RECENT = 1_000
_KEY = "files:freshness"
_SUM = "sum"

_RECENT = """
    SELECT coalesce(kind, ''), count(*),
        percentile_disc(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY first_s),
        percentile_disc(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY all_s)
    FROM (
        SELECT kind, extract(epoch FROM first_searchable_at - uploaded_at)::float AS first_s,
            extract(epoch FROM searchable_at - uploaded_at)::float AS all_s
        FROM files_file WHERE searchable_at IS NOT NULL ORDER BY searchable_at DESC LIMIT %s
    ) AS latest GROUP BY GROUPING SETS ((), (kind)) HAVING count(*) > 0 ORDER BY kind NULLS FIRST
"""


def note_searchable(file: File) -> None:
    """Set the times of a file that settles, the first time it does. The caller saves it, in a transaction."""
    if file.searchable_at is not None or file.uploaded_at is None:
        return
    file.first_searchable_at, file.searchable_at = _times(file, file.uploaded_at)
    first = (file.first_searchable_at - file.uploaded_at).total_seconds()
    whole = (file.searchable_at - file.uploaded_at).total_seconds()
    transaction.on_commit(partial(_count, file.kind, {FIRST_PAGE: first, WHOLE_FILE: whole}))


def _times(file: File, uploaded_at: datetime) -> tuple[datetime, datetime]:
    if file.same_as_id is not None:  # its pages came all at once, and carry the times of those they are copies of
        now = timezone.now()
        return now, now
    times = Page.objects.filter(file=file).aggregate(first=Min("indexed_at"), last=Max("indexed_at"))
    first, last = times["first"] or uploaded_at, times["last"] or uploaded_at
    return max(first, uploaded_at), max(last, uploaded_at)


def _count(kind: str, seconds: dict[str, float]) -> None:
    try:
        pipeline = valkey().pipeline(transaction=True)
        for what, took in seconds.items():
            pipeline.hincrby(_KEY, f"{what}:{kind}:{bisect_left(BUCKETS_S, took)}", 1)
            pipeline.hincrbyfloat(_KEY, f"{what}:{kind}:{_SUM}", took)
        pipeline.execute()
    except redis.RedisError:
        pass  # the rows know; a figure less is no reason to fail


def freshness_counts() -> Iterator[FreshnessCounts]:
    """Counts since Valkey was new, by what and kind. Raises RedisError."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for field, value in cast("dict[bytes, bytes]", valkey().hgetall(_KEY)).items():
        what, kind, place = field.decode().split(":")
        found.setdefault((what, kind), {})[place] = float(value)
    for (what, kind), counts in sorted(found.items()):
        bounds = (*BUCKETS_S, inf)
        totals = accumulate(int(counts.get(str(number), 0)) for number in range(len(bounds)))
        yield FreshnessCounts(what, kind, tuple(zip(bounds, totals, strict=True)), counts.get(_SUM, 0.0))


def recent_freshness() -> list[RecentFreshness]:
    """Of the last 1,000 files that became searchable: all together (no kind) first, then by kind."""
    with connection.cursor() as cursor:
        cursor.execute(_RECENT, [RECENT])
        return [RecentFreshness(kind, files, *first, *whole) for kind, files, first, whole in cursor.fetchall()]
