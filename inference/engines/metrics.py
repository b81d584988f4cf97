"""vLLM's /metrics as a `Load`: names are mapped here, since they have been renamed before.

Responsible for: the few series that say how busy a replica is. Leaves out everything else on that page.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

from inference.engines.payloads import version_of
from inference.protocol import Load

# Names by the vLLM version that has them first, newest first. Some versions show a series under its old name as well,
# so that one name a fact is read and not all of them.
_SINCE: tuple[tuple[tuple[int, int], Mapping[str, str]], ...] = (
    (
        (0, 10),
        {
            "kv_used": "vllm:kv_cache_usage_perc",
            "prefix_queries": "vllm:prefix_cache_queries_total",
            "prefix_hits": "vllm:prefix_cache_hits_total",
        },
    ),
    (
        (0, 0),
        {
            "running": "vllm:num_requests_running",
            "waiting": "vllm:num_requests_waiting",
            "kv_used": "vllm:gpu_cache_usage_perc",
            "prefix_queries": "vllm:gpu_prefix_cache_queries_total",
            "prefix_hits": "vllm:gpu_prefix_cache_hits_total",
            "generated": "vllm:generation_tokens_total",
        },
    ),
)
_CACHE_CONFIG = b"vllm:cache_config_info{"
_ALL = frozenset(name.encode() for _, names in _SINCE for name in names.values())
_FACTS = ("running", "waiting", "kv_used", "prefix_queries", "prefix_hits", "generated")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def parse_metrics(page: bytes, *, slots: int, version: str = "") -> Load:
    """Sums over the engines of one server (data parallel); the KV ratio is their mean. Without a version, or where a
    version does not show what it should, the newest name that is there counts."""
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    kv_tokens = 0
    for line in page.splitlines():
        if not line.startswith(b"vllm:"):
            continue
        if line.startswith(_CACHE_CONFIG):
            kv_tokens += _kv_tokens(line.decode())
            continue
        name = re.split(rb"[{ ]", line, maxsplit=1)[0]
        if name in _ALL:
            sums[name.decode()] = sums.get(name.decode(), 0.0) + _value(line)
            counts[name.decode()] = counts.get(name.decode(), 0) + 1
    named = {fact: name for fact in _FACTS if (name := _name_of(fact, version, sums)) is not None}
    facts = {fact: sums[name] for fact, name in named.items()}
    queries = facts.get("prefix_queries", 0.0)
    return Load(
        running=int(facts.get("running", 0)),
        waiting=int(facts.get("waiting", 0)),
        slots=slots,
        kv_used_ratio=facts["kv_used"] / counts[named["kv_used"]] if "kv_used" in facts else None,
        prefix_hit_ratio=facts.get("prefix_hits", 0.0) / queries if queries else None,
        kv_tokens=kv_tokens or None,
        generated_tokens=int(facts["generated"]) if "generated" in facts else None,
    )


def _name_of(fact: str, version: str, there: Container[str]) -> str | None:
    """The series that holds a fact on a page of this version."""
    number = version_of(version)
    fitting = [names[fact] for since, names in _SINCE if fact in names and since <= number]
    others = [names[fact] for _, names in _SINCE if fact in names]
    return next((name for name in (*fitting, *others) if name in there), None)


def _value(line: bytes) -> float:
    try:
        return float(line.rsplit(None, 1)[1])
    except (IndexError, ValueError):
        return 0.0


def _kv_tokens(line: str) -> int:
    labels = dict(_LABEL.findall(line))
    blocks, size = labels.get("num_gpu_blocks", ""), labels.get("block_size", "")
    return int(blocks) * int(size) if blocks.isdigit() and size.isdigit() else 0
