"""What the runs of this process came to, as Prometheus series.

Labels are bounded: models, lanes, tiers and states are ours, and of versions and regions, which servers tell, so many
are kept apart.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

from apps.conversations.types import ClaimedRun, RunResult
from inference.protocol import ReplicaInfo

# The engine's version and the region are those of the replica that had the run last.
WHERE = ("model", "lane", "tier", "version", "region")
MOST_VALUES = 32
OTHER = "other"
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 40, 80, 160)
_TOKEN_GAPS = (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.5, 1)

RUNS = Counter("parley_runs", "Runs that ended, by how.", (*WHERE, "state"))
WAIT = Histogram("parley_run_wait_seconds", "From the claim until a replica had a place.", WHERE, buckets=_SECONDS)
TTFT = Histogram("parley_run_ttft_seconds", "From the claim to the first token.", WHERE, buckets=_SECONDS)
ITL = Histogram("parley_run_itl_seconds", "Mean time between tokens of a run.", WHERE, buckets=_TOKEN_GAPS)
TOKENS = Counter("parley_tokens", "Tokens of ended runs; kind: prompt, cached or completion.", (*WHERE, "kind"))
FAILOVERS = Counter("parley_failovers", "Answers that went on elsewhere.", ("model",))
RECONSTRUCTED = Counter("parley_reconstructed_tokens", "Tokens that were written before a failover.", ("model",))
ESCALATIONS = Counter("parley_escalations", "Answers that a stronger model gave instead of this one.", ("model",))
REJECTIONS = Counter("parley_rejections", "Requests refused before a run was written.", ("model", "reason"))
EXECUTING = Gauge("parley_runs_executing", "Runs that this runner has in hand.")


class Kept:
    """The first `MOST_VALUES` values of a label by name, all later ones as one."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def label(self, value: str) -> str:
        if value not in self._seen and len(self._seen) == MOST_VALUES:
            return OTHER
        self._seen.add(value)
        return value


_versions, _regions = Kept(), Kept()


def record_failover(model: str, *, tokens: int) -> None:
    """An answer goes on elsewhere, behind so many tokens."""
    FAILOVERS.labels(model).inc()
    RECONSTRUCTED.labels(model).inc(tokens)


def record_end(run: ClaimedRun, result: RunResult, seconds: float, *, placed: ReplicaInfo | None = None) -> None:
    """`seconds`: since the claim. `placed`: the replica that had it last."""
    version, region = (placed.version, placed.region) if placed else ("", run.region)
    where = (result.model or run.model, run.lane, run.tier, _versions.label(version), _regions.label(region))
    RUNS.labels(*where, result.state.value).inc()
    TOKENS.labels(*where, "prompt").inc(result.prompt_tokens)
    TOKENS.labels(*where, "cached").inc(result.cached_tokens)
    TOKENS.labels(*where, "completion").inc(result.completion_tokens)
    if result.waited_ms is not None:
        WAIT.labels(*where).observe(result.waited_ms / 1000)
    if result.ttft_ms is not None:
        TTFT.labels(*where).observe(result.ttft_ms / 1000)
        if result.completion_tokens > 1:
            gap = (seconds - result.ttft_ms / 1000) / (result.completion_tokens - 1)
            ITL.labels(*where).observe(max(0.0, gap))
    for notice in result.notices:
        if notice["kind"] == "escalated":
            ESCALATIONS.labels(notice["from_model"]).inc()
