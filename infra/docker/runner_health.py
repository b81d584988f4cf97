"""Container health of a runner: this host's lease in Postgres is alive. Exit status 0 or 1."""

import os
import socket
import sys

import psycopg

ALIVE = "SELECT 1 FROM conversations_runner WHERE host = %s AND lease_until > now() LIMIT 1"

with psycopg.connect(os.environ["DATABASE_URL"], connect_timeout=4) as connection:
    sys.exit(0 if connection.execute(ALIVE, [socket.gethostname()]).fetchone() else 1)
