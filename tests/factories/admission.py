"""Replicas and asks for tests of the shared admission, and the checker that counts everything again."""

from __future__ import annotations

from collections import Counter
from typing import Any

import redis

from inference.admission import Ask, Budget, Lane, Policy, Tier
from inference.protocol import ReplicaInfo, ReplicaState

Client = Any  # redis-py's methods are typed for two worlds at once


def a_replica(
    id: str = "r1", model: str = "m", *, slots: int = 2, kv: int = 10_000, context: int = 8_000
) -> ReplicaInfo:
    return ReplicaInfo(
        id, model, "http://x", "fake", ReplicaState.READY, slots=slots, kv_tokens=kv, context_length=context
    )


def own_runs(most: int) -> Policy:
    """So many answers in progress of one person."""
    return Policy(users=dict.fromkeys(Tier, Budget(concurrency=most)))


def an_ask(ticket: str, **changes: Any) -> Ask:
    """100 tokens, interactive and free, of a user of its own."""
    facts: dict[str, Any] = {
        "ticket": ticket,
        "model": "m",
        "lane": Lane.INTERACTIVE,
        "tier": Tier.FREE,
        "user": f"user-of-{ticket}",
        "organization": "org",
        "prompt_tokens": 60,
        "output_tokens": 40,
    }
    return Ask(**facts | changes)


def connect(url: str) -> Client:
    return redis.Redis.from_url(url, decode_responses=True)


def leaks(valkey: Client) -> list[str]:
    """What the counters say and the tickets do not: every sum is made again from the tickets themselves."""
    tickets = [valkey.hgetall(key) | {"id": key[len("adm:t:") :]} for key in valkey.scan_iter("adm:t:*")]
    wrong = []
    for what, said, real in (
        ("tickets in flight", _numbers(valkey.hgetall("adm:flying")), _flying(tickets)),
        ("replicas", _said_of_replicas(valkey), _held(tickets)),
        ("classes", _said_of_classes(valkey), _waiting(tickets)),
        ("owners", _said_of_owners(valkey), Counter(t["owner"] for t in tickets)),
        ("deadlines", {"n": valkey.zcard("adm:deadlines")}, {"n": len(tickets)}),
    ):
        wrong += [
            f"{what}: {key} is {said.get(key, 0)} and should be {real.get(key, 0)}"
            for key in sorted({*said, *real})
            if said.get(key, 0) != real.get(key, 0)
        ]
    return wrong


def _numbers(raw: dict[str, str]) -> dict[str, int]:
    return {key: int(value) for key, value in raw.items()}


def _flying(all_tickets: list[dict[str, str]]) -> Counter[str]:
    tickets = [t for t in all_tickets if t["organization"] and not t["class"].startswith("batch")]
    return Counter([f"u:{t['user']}" for t in tickets] + [f"o:{t['organization']}" for t in tickets])


def _said_of_replicas(valkey: Client) -> dict[str, int]:
    said: dict[str, int] = {}
    for key in valkey.scan_iter("adm:m:*:r:*"):
        raw = valkey.hgetall(key)
        for field in ("used", "kv_used", "long_used", "long_kv"):
            said[f"{key} {field}"] = int(raw.get(field, 0))
    return said


def _held(tickets: list[dict[str, str]]) -> Counter[str]:
    held: Counter[str] = Counter()
    for t in tickets:
        if "replica" in t:
            key, need = f"adm:m:{t['model']}:r:{t['replica']}", int(t["need"])
            held += Counter({f"{key} used": 1, f"{key} kv_used": need})
            if t["class"].startswith("long"):
                held += Counter({f"{key} long_used": 1, f"{key} long_kv": need})
    return held


def _said_of_classes(valkey: Client) -> dict[str, int]:
    said: dict[str, int] = {}
    for key in valkey.scan_iter("adm:m:*:c:*", _type="hash"):
        raw = valkey.hgetall(key)
        said[f"{key} waiting"] = int(raw.get("waiting", 0))
        said[f"{key} tokens"] = int(raw.get("tokens", 0))
        said[f"{key} users"] = valkey.zcard(f"{key}:users")
    return said


def _waiting(tickets: list[dict[str, str]]) -> Counter[str]:
    waiting: Counter[str] = Counter()
    users = set()
    for t in tickets:
        if "replica" not in t:
            key = f"adm:m:{t['model']}:c:{t['class']}"
            waiting += Counter({f"{key} waiting": 1, f"{key} tokens": int(t["need"])})
            users.add((key, t["user"]))
    return waiting + Counter(f"{key} users" for key, _ in users)


def _said_of_owners(valkey: Client) -> dict[str, int]:
    return {key[len("adm:o:") :]: valkey.scard(key) for key in valkey.scan_iter("adm:o:*")}
