"""`GET /metrics` for Prometheus: this web process's own series, and what all share: the registry, the line, and
how long files took until they could be searched.

Runners have an exporter of their own (PARLEY_RUNNER_METRICS_PORT). Readable with PARLEY_METRICS_TOKEN as a Bearer
token, and without a token only from this machine.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Collection, Iterable, Iterator
from math import isinf

import redis
from django.conf import settings
from django.db import OperationalError, connection
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from apps.conversations.public import admission_policy
from apps.core.valkey import valkey
from apps.files.public import freshness_counts
from apps.files.types import FIRST_PAGE, WHOLE_FILE
from inference.admission.verbs import read_standings
from inference.client import read_records
from inference.registry import Record

_LINE = """
    SELECT model, lane, tier, state, count(*), coalesce(extract(epoch FROM now() - min(created_at)), 0)
    FROM conversations_run WHERE state IN ('queued', 'running') GROUP BY model, lane, tier, state
"""
_REPLICA = ("model", "replica", "version", "region")


class SharedCollector(Collector):
    """Read at each scrape, so that a restart of this process loses nothing."""

    def collect(self) -> Iterable[Metric]:
        try:
            records = read_records(valkey())
            yield from _replicas(records)
            yield from _standings({record.replica.line for record in records})
            yield from _freshness()
        except redis.RedisError:
            yield _up("valkey", False)
        else:
            yield _up("valkey", True)
        try:
            yield from _line()
        except OperationalError:
            yield _up("postgres", False)
        else:
            yield _up("postgres", True)


def _up(server: str, is_up: bool) -> Metric:
    return GaugeMetricFamily(f"parley_{server}_up", f"Whether {server} answers this process.", value=float(is_up))


def _replicas(records: Iterable[Record]) -> Iterator[Metric]:
    state = GaugeMetricFamily("parley_replica_state", "1 for the state a replica is in.", labels=(*_REPLICA, "state"))
    gauges = {
        "slots": GaugeMetricFamily("parley_replica_slots", "Answers it can write at once.", labels=_REPLICA),
        "running": GaugeMetricFamily("parley_replica_running", "Answers it writes.", labels=_REPLICA),
        "waiting": GaugeMetricFamily("parley_replica_waiting", "Requests that wait inside it.", labels=_REPLICA),
        "kv_used_ratio": GaugeMetricFamily("parley_replica_kv_used_ratio", "KV cache in use.", labels=_REPLICA),
        "kv_tokens": GaugeMetricFamily("parley_replica_kv_tokens", "Tokens that fit its KV cache.", labels=_REPLICA),
        "prefix_hit_ratio": GaugeMetricFamily(
            "parley_replica_prefix_hit_ratio", "Prompt tokens that were in its prefix cache.", labels=_REPLICA
        ),
    }
    for record in records:
        replica = record.replica
        labels = (replica.model, replica.id, replica.version, replica.region)
        state.add_metric((*labels, replica.state.value), 1)
        for name, gauge in gauges.items():
            value = getattr(replica, name)
            if value is not None:
                gauge.add_metric(labels, value)
    yield state
    yield from gauges.values()


def _standings(models: Collection[str]) -> Iterator[Metric]:
    """The admission's line, for alerts and for what decides how many replicas run."""
    where = ("model", "lane", "tier")
    tickets = GaugeMetricFamily("parley_queue_runs", "Runs that wait for a place on a replica.", labels=where)
    tokens = GaugeMetricFamily("parley_queue_tokens", "Tokens that those may need.", labels=where)
    rate = GaugeMetricFamily("parley_tokens_per_second", "Reserved tokens given back a second.", labels=("model",))
    forecast = GaugeMetricFamily(
        "parley_queue_seconds", "Forecast: until all that waits now would have been served.", labels=("model",)
    )
    level = GaugeMetricFamily("parley_pressure_level", "0 to 4 on the pressure ladder.", labels=("model",))
    for model, standing in asyncio.run(read_standings(settings.REDIS_URL, sorted(models), admission_policy())).items():
        level.add_metric((model,), standing.level)
        if standing.tokens_per_s is not None:
            rate.add_metric((model,), standing.tokens_per_s)
            queued = sum(waiting.tokens for waiting in standing.waiting)
            forecast.add_metric((model,), queued / max(1.0, standing.tokens_per_s))
        for waiting in standing.waiting:
            tickets.add_metric((model, waiting.lane.value, waiting.tier.value), waiting.tickets)
            tokens.add_metric((model, waiting.lane.value, waiting.tier.value), waiting.tokens)
    yield from (tickets, tokens, rate, forecast, level)


def _freshness() -> Iterator[Metric]:
    told = {
        FIRST_PAGE: HistogramMetricFamily(
            "parley_file_first_page_searchable_seconds",
            "From the end of an upload until its first page could be searched.",
            labels=("kind",),
        ),
        WHOLE_FILE: HistogramMetricFamily(
            "parley_file_searchable_seconds",
            "From the end of an upload until all that could be read of it could be searched.",
            labels=("kind",),
        ),
    }
    for counts in freshness_counts():
        buckets = [("+Inf" if isinf(bound) else str(bound), count) for bound, count in counts.buckets]
        told[counts.what].add_metric((counts.kind,), buckets, counts.seconds)
    yield from told.values()


def _line() -> Iterator[Metric]:
    labels = ("model", "lane", "tier", "state")
    runs = GaugeMetricFamily("parley_runs_active", "Runs that wait or are executed.", labels=labels)
    oldest = GaugeMetricFamily("parley_runs_oldest_seconds", "Age of the oldest of them.", labels=labels)
    with connection.cursor() as cursor:
        cursor.execute(_LINE)
        for *where, count, age in cursor.fetchall():
            runs.add_metric(where, count)
            oldest.add_metric(where, float(age))
    yield runs
    yield oldest


def _shared() -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(SharedCollector())
    return registry


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """404 for whoever may not read it: it names models and machines."""
    if not _may_read(request):
        return HttpResponseNotFound()
    body = generate_latest(REGISTRY) + generate_latest(_shared())
    return HttpResponse(body, content_type=CONTENT_TYPE_LATEST)


def _may_read(request: HttpRequest) -> bool:
    token: str = settings.METRICS_TOKEN
    if token:
        sent = request.headers.get("Authorization", "")
        return hmac.compare_digest(sent.encode(), f"Bearer {token}".encode())
    direct = "X-Forwarded-For" not in request.headers and "Forwarded" not in request.headers
    return direct and request.META.get("REMOTE_ADDR") in ("127.0.0.1", "::1")
