"""Whether a replica of this machine's supervisor is ready: `python -m inference.health`, exit status 0 or 1.

For container health checks. Reads the registry only, as everyone else does.
"""

from __future__ import annotations

import socket
import sys

from redis import Redis

from inference.protocol import ReplicaState
from inference.registry import read_records
from inference.settings import read_settings


def main() -> int:
    redis = Redis.from_url(read_settings().redis_url, socket_timeout=4, socket_connect_timeout=2)
    mine = f"{socket.gethostname()}:"
    states = [record.replica.state for record in read_records(redis) if record.owner.startswith(mine)]
    return 0 if ReplicaState.READY in states else 1


if __name__ == "__main__":
    sys.exit(main())
