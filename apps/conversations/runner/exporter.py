"""What Prometheus reads of a runner: the series of its runs, and what its pool and the admission have seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate

from django.conf import settings
from prometheus_client import REGISTRY, Metric, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from apps.conversations.metrics import EXECUTING
from inference.admission.stats import Histogram
from inference.client import Admission, ReplicaPool


@contextmanager
def exporting(pool: ReplicaPool, admission: Admission, executing: Callable[[], int]) -> Iterator[None]:
    """Serve this process's series while the block runs, where a port is set."""
    EXECUTING.set_function(executing)
    host, port = settings.RUNNER_METRICS
    if not port:
        yield
        return
    collector = PoolCollector(pool, admission)
    REGISTRY.register(collector)
    server, thread = start_http_server(port, host)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        REGISTRY.unregister(collector)


class PoolCollector(Collector):
    """Read at each scrape. Counters are those of this process; Prometheus adds processes up."""

    def __init__(self, pool: ReplicaPool, admission: Admission) -> None:
        self._pool, self._stats = pool, admission.stats

    def collect(self) -> Iterable[Metric]:
        stats = self._stats
        yield _counter("parley_admission_granted", "Places given.", ("lane", "tier"), _by_class(stats.granted))
        yield _counter("parley_admission_refused", "Asks refused.", ("code",), _by_one(stats.refused))
        yield _counter("parley_reservations_reaped", "Places taken back from who was gone.", (), [((), stats.reaped)])
        yield _counter("parley_admission_recovered", "Times Valkey had forgotten all.", (), [((), stats.recovered)])
        yield _histogram("parley_admission_wait_seconds", "From asking to a place.", stats.waits_s)
        yield _histogram(
            "parley_wait_estimate_error_ratio", "Told and real wait apart, by the real one.", stats.estimate_errors
        )
        failures = [((model, str(kind)), count) for (model, kind), count in self._pool.failures.items()]
        yield _counter("parley_engine_failures", "Answers that broke off.", ("model", "kind"), failures)
        yield self._breakers()

    def _breakers(self) -> Metric:
        gauge = GaugeMetricFamily(
            "parley_breaker_open", "1 while this process leaves the replica alone.", labels=("model", "replica")
        )
        for replica in self._pool.replicas():
            gauge.add_metric((replica.model, replica.id), float(replica.breaker != "closed"))
        return gauge


def _by_class(counts: Mapping[str, int]) -> list[tuple[tuple[str, ...], int]]:
    return [(tuple(name.split(":", 1)), count) for name, count in counts.items()]


def _by_one(counts: Mapping[str, int]) -> list[tuple[tuple[str, ...], int]]:
    return [((name,), count) for name, count in counts.items()]


def _counter(
    name: str, text: str, labels: tuple[str, ...], values: Sequence[tuple[tuple[str, ...], int]]
) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=labels)
    for where, value in values:
        family.add_metric(where, value)
    return family


def _histogram(name: str, text: str, seen: Histogram) -> HistogramMetricFamily:
    family = HistogramMetricFamily(name, text)
    bounds = [*(str(bound) for bound in seen.bounds), "+Inf"]
    family.add_metric((), list(zip(bounds, accumulate(seen.counts), strict=True)), seen.total)
    return family
