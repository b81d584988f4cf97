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
from inference.breaker import BreakerState
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
        yield _counter("parley_admission_refused", "Asks refused.", ("model", "code"), list(stats.refused.items()))
        yield _counter("parley_reservations_reaped", "Places taken back from who was gone.", (), [((), stats.reaped)])
        yield _counter("parley_admission_recovered", "Times Valkey had forgotten all.", (), [((), stats.recovered)])
        yield _histogram("parley_admission_wait_seconds", "From asking to a place.", (), {(): stats.waits_s})
        errors: dict[tuple[str, ...], Histogram] = {(model,): seen for model, seen in stats.estimate_errors.items()}
        told = "Told and real wait apart, by the real one."
        yield _histogram("parley_wait_estimate_error_ratio", told, ("model",), errors)
        failures = [((model, str(kind)), count) for (model, kind), count in self._pool.failures.items()]
        yield _counter("parley_engine_failures", "Answers that broke off.", ("model", "kind"), failures)
        yield self._breakers()

    def _breakers(self) -> Metric:
        """`closed`: answers go there; `open`: none does; `half_open`: one probe of our own is on its way."""
        said = "1 for the state of this process's breaker of a replica."
        gauge = GaugeMetricFamily("parley_breaker_state", said, labels=("model", "replica", "state"))
        for replica in self._pool.replicas():
            for state in BreakerState:
                gauge.add_metric((replica.model, replica.id, state.value), float(replica.breaker == state))
        return gauge


def _by_class(counts: Mapping[str, int]) -> list[tuple[tuple[str, ...], int]]:
    return [(tuple(name.split(":", 1)), count) for name, count in counts.items()]


def _counter(
    name: str, text: str, labels: tuple[str, ...], values: Sequence[tuple[tuple[str, ...], int]]
) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=labels)
    for where, value in values:
        family.add_metric(where, value)
    return family


def _histogram(
    name: str, text: str, labels: tuple[str, ...], values: Mapping[tuple[str, ...], Histogram]
) -> HistogramMetricFamily:
    family = HistogramMetricFamily(name, text, labels=labels)
    for where, seen in values.items():
        bounds = [*(str(bound) for bound in seen.bounds), "+Inf"]
        family.add_metric(where, list(zip(bounds, accumulate(seen.counts), strict=True)), seen.total)
    return family
