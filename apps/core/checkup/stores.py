"""Postgres, Valkey, the disk and the secrets."""

from __future__ import annotations

import shutil
import stat

import psycopg
import redis
from django.conf import settings
from django.db import connection

from apps.core.checkup.types import Finding, fail, ok, warn
from apps.core.db import THREADS
from apps.core.valkey import valkey

POSTGRES_OLDEST = 160_000
# Older ones have a published vulnerability.
PGVECTOR_OLDEST = (0, 8, 2)
EXTENSIONS = ("vector", "pg_trgm", "unaccent", "btree_gin")
DISK_LOW = 2 << 30
DISK_EMPTY = 256 << 20
# Connections that Postgres keeps for its administrator, and that maintenance by hand needs.
RESERVED = 10
# `make up` runs one web and one runner process with a pool each, and workers with a connection or two a process.
WORKER_PROCESSES = 6


def check_secrets() -> list[Finding]:
    path = settings.STATE_DIR / "secrets.json"
    if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
        return [fail("secrets", f"{path} can be read by other users", f"chmod 600 {path}")]
    if settings.SECRET_KEY == settings.CACHE_SALT_SECRET:
        return [fail("secrets", "two secrets are the same", "Give PARLEY_CACHE_SALT_SECRET a value of its own.")]
    return [ok("secrets", "set, of sufficient length")]


def check_postgres() -> list[Finding]:
    named = connection.settings_dict
    where = {"host": named["HOST"], "port": named["PORT"], "dbname": named["NAME"]}
    try:
        # Not through the pool, which would try for longer than a person waits.
        who = {"user": named["USER"], "password": named["PASSWORD"]}
        with psycopg.connect(**where, **who, connect_timeout=3) as direct, direct.cursor() as cursor:
            cursor.execute("SELECT current_setting('server_version'), current_setting('server_version_num')::int")
            version, number = cursor.fetchall()[0]
            cursor.execute("SELECT extname, extversion FROM pg_extension")
            extensions = dict(cursor.fetchall())
            cursor.execute("SELECT current_setting('max_connections')::int, count(*) FROM pg_stat_activity")
            limit, used = cursor.fetchall()[0]
    except psycopg.OperationalError as error:
        advice = f"{str(error).strip().splitlines()[0]}. Start it (`make up`), or check DATABASE_URL."
        return [fail("postgres", f"no answer at {where['host']}:{where['port']}", advice)]
    found = ok("postgres", version)
    if number < POSTGRES_OLDEST:
        found = fail("postgres", version, "Postgres 16 or newer is needed.")
    return [found, *_extensions(extensions), connections(limit, used)]


def _extensions(there: dict[str, str]) -> list[Finding]:
    missing = [name for name in EXTENSIONS if name not in there]
    if missing:
        wanted = " ".join(f"CREATE EXTENSION {name};" for name in missing)
        return [fail("extensions", f"missing: {', '.join(missing)}", f"As a superuser, in this database: {wanted}")]
    vector = there["vector"]
    if tuple(int(part) for part in vector.split(".")) < PGVECTOR_OLDEST:
        return [
            fail("pgvector", vector, "Versions before 0.8.2 have a known vulnerability: ALTER EXTENSION vector UPDATE")
        ]
    return [ok("extensions", f"pgvector {vector}, {', '.join(name for name in EXTENSIONS if name != 'vector')}")]


def connections(limit: int, used: int, *, webs: int = 1, runners: int = 1, workers: int = WORKER_PROCESSES) -> Finding:
    """Whether a connection for each database thread, the workers and a reserve fit into `max_connections`."""
    web = settings.WEB_THREADS + THREADS
    worst = webs * web + runners * THREADS + workers * 2 + RESERVED
    arithmetic = (
        f"{webs} web x {web} + {runners} runner x {THREADS} + {workers} workers x 2 + {RESERVED} reserve"
        f" = {worst} of {limit} ({used} used)"
    )
    if worst > limit:
        return fail("connections", arithmetic, "Raise max_connections, or lower PARLEY_WEB_THREADS.")
    if used > limit * 0.8:
        return warn("connections", arithmetic, "Somebody else uses this server too; raise max_connections.")
    return ok("connections", arithmetic)


def check_valkey() -> list[Finding]:
    try:
        facts = valkey().info()
    except (redis.RedisError, OSError) as error:
        return [fail("valkey", "no answer", f"{error} Start it (`make up`), or check REDIS_URL.")]
    version = facts.get("valkey_version") or facts["redis_version"]
    findings = [ok("valkey", version)]
    policy = facts.get("maxmemory_policy")
    if policy != "noeviction":
        advice = "Set maxmemory-policy to noeviction: evicted keys are queues and live answers."
        findings.append(fail("valkey memory", f"policy {policy}", advice))
    if not facts.get("aof_enabled"):
        advice = "Set appendonly to yes; without it a restart loses the queues and the answers that are under way."
        findings.append(warn("valkey persistence", "off", advice))
    elif facts.get("aof_last_write_status") != "ok":
        findings.append(fail("valkey persistence", "the last write failed", "Is its disk full?"))
    return findings


def check_disk() -> list[Finding]:
    free = shutil.disk_usage(settings.STATE_DIR if settings.STATE_DIR.exists() else settings.STATE_DIR.parent).free
    found = f"{free / (1 << 30):.1f} GB free at {settings.STATE_DIR}"
    if free < DISK_EMPTY:
        return [fail("disk", found, "Free some space now: Postgres stops when it is full.")]
    if free < DISK_LOW:
        return [warn("disk", found, "Free some space; uploads and logs need it.")]
    return [ok("disk", found)]
