"""vLLM's /metrics as a `Load`: names are mapped here, since they have been renamed before.

Responsible for: the few series that say how busy a replica is. Leaves out everything else on that page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from inference.protocol import Load

_WANTED: Mapping[str, tuple[str, ...]] = {
    "running": ("vllm:num_requests_running",),
    "waiting": ("vllm:num_requests_waiting",),
    "kv_used": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    "prefix_queries": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    "prefix_hits": ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
    "generated": ("vllm:generation_tokens_total",),
}
_CACHE_CONFIG = b"vllm:cache_config_info{"
_FACT_OF = {name.encode(): fact for fact, names in _WANTED.items() for name in names}
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def parse_metrics(page: bytes, *, slots: int) -> Load:
    """Sums over the engines of one server (data parallel); the KV ratio is their mean."""
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    kv_tokens = 0
    for line in page.splitlines():
        if not line.startswith(b"vllm:"):
            continue
        if line.startswith(_CACHE_CONFIG):
            kv_tokens += _kv_tokens(line.decode())
            continue
        fact = _FACT_OF.get(re.split(rb"[{ ]", line, maxsplit=1)[0])
        if fact is not None:
            sums[fact] = sums.get(fact, 0.0) + _value(line)
            counts[fact] = counts.get(fact, 0) + 1
    queries = sums.get("prefix_queries", 0.0)
    return Load(
        running=int(sums.get("running", 0)),
        waiting=int(sums.get("waiting", 0)),
        slots=slots,
        kv_used_ratio=sums["kv_used"] / counts["kv_used"] if "kv_used" in sums else None,
        prefix_hit_ratio=sums.get("prefix_hits", 0.0) / queries if queries else None,
        kv_tokens=kv_tokens or None,
        generated_tokens=int(sums["generated"]) if "generated" in sums else None,
    )


def _value(line: bytes) -> float:
    try:
        return float(line.rsplit(None, 1)[1])
    except (IndexError, ValueError):
        return 0.0


def _kv_tokens(line: str) -> int:
    labels = dict(_LABEL.findall(line))
    blocks, size = labels.get("num_gpu_blocks", ""), labels.get("block_size", "")
    return int(blocks) * int(size) if blocks.isdigit() and size.isdigit() else 0
