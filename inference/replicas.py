"""Replicas by hand: `python -m inference.replicas [drain ID | quarantine ID | resume ID]`; without words, a list.

`drain` lets answers in progress end and sends no new ones; the process goes on, so that it can be worked on. Runners
follow within a second or two. Orders stand until `resume`, over restarts of everything but an emptied Valkey. Finds the
registry by REDIS_URL.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from redis import Redis

from inference.protocol import ReplicaState
from inference.registry import mixed_weights, order_replica, read_records
from inference.settings import read_settings
from inference.verdicts import read_verdicts

_ORDERS = {"drain": ReplicaState.DRAINING, "quarantine": ReplicaState.QUARANTINED, "resume": None}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("order", nargs="?", choices=_ORDERS)
    parser.add_argument("id", nargs="?", help="as the list shows it")
    asked = parser.parse_args(arguments)
    redis = Redis.from_url(read_settings().redis_url, socket_timeout=5, socket_connect_timeout=3)
    if asked.order:
        if asked.id not in {record.replica.id for record in read_records(redis)}:
            sys.stderr.write(f"there is no replica {asked.id!r}\n")
            return 1
        order_replica(redis, asked.id, _ORDERS[asked.order])
    sys.stdout.write(_table(redis))
    return 0


def _table(redis: Redis) -> str:
    """A line a replica: its id, state, running and waiting answers, how many processes leave it alone, and its weights
    where others of the model have different ones."""
    verdicts, records = read_verdicts(redis), read_records(redis)
    mixed = mixed_weights(records)
    lines = []
    for record in records:
        info = record.replica
        out = sum(v.replica == info.id for v in verdicts)
        note = f"  out of use in {out} processes" if out else ""
        if weights := mixed.get(info.model, {}).get(info.id):
            note += f"  weights {weights[:12]}, others differ"
        lines.append(f"{info.id:<40} {info.state.value:<12} {info.running} running, {info.waiting} waiting{note}\n")
    return "".join(lines)


if __name__ == "__main__":
    sys.exit(main())
