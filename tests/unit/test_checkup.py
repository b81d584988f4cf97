"""The checkup against real servers: fine is fine, and each thing that is wrong is found with advice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import StringIO

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection

from apps.core.checkup import Finding, Level, examine
from apps.core.checkup.stores import _extensions, check_postgres, check_secrets, check_valkey, connections
from apps.core.checkup.work import check_migrations, check_queues, check_replicas
from inference.protocol import ReplicaState
from infra.local.layout import REPOSITORY
from tests.factories.inference import publish_replica
from tests.services import Services


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


@pytest.mark.django_db
def test_a_healthy_store_has_nothing_to_complain_of(services: Services) -> None:
    found = by_name(check_postgres())
    assert {name: finding.level for name, finding in found.items()} == {
        "postgres": Level.OK,
        "extensions": Level.OK,
        "connections": Level.OK,
    }
    assert found["postgres"].found.startswith("18.")
    assert check_migrations()[0].level is Level.OK


@pytest.mark.django_db
def test_a_migration_that_was_not_applied_is_named() -> None:
    with connection.cursor() as cursor:
        cursor.execute("delete from django_migrations where app = 'files'")
    found = check_migrations()[0]
    assert found.level is Level.FAIL
    assert "files.0001_initial" in found.found
    assert "migrate" in found.advice


def test_an_old_pgvector_and_a_missing_extension_are_refused() -> None:
    fine = {"vector": "0.8.6", "pg_trgm": "1", "unaccent": "1", "btree_gin": "1"}
    assert _extensions(fine)[0].level is Level.OK
    assert _extensions({**fine, "vector": "0.8.1"})[0].level is Level.FAIL
    assert "CREATE EXTENSION unaccent" in _extensions({k: v for k, v in fine.items() if k != "unaccent"})[0].advice


def test_connections_that_do_not_fit_are_found() -> None:
    assert connections(100, 5).level is Level.OK
    assert connections(100, 5, webs=8).level is Level.FAIL
    assert connections(100, 95).level is Level.WARN


def test_a_valkey_that_keeps_nothing_is_warned_about(services: Services) -> None:
    assert services.valkey.durable is False
    assert by_name(check_valkey())["valkey persistence"].level is Level.WARN
    services.valkey.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        assert by_name(check_valkey())["valkey memory"].level is Level.FAIL
    finally:
        services.valkey.call("CONFIG", "SET", "maxmemory-policy", "noeviction")


def test_queues_without_workers_and_models_without_replicas_are_found() -> None:
    assert [finding.level for finding in check_queues()] == [Level.FAIL] * 4
    assert check_replicas()[0].level is Level.FAIL


def test_replicas_of_one_model_with_different_weights_are_named() -> None:
    for number, weights in enumerate(("a" * 64, "a" * 64, ""), start=1):
        publish_replica("m", number=number, weights=weights)
    publish_replica("m", number=4, weights="b" * 64, state=ReplicaState.GONE)
    assert not [finding for finding in check_replicas() if finding.name.startswith("weights")]
    publish_replica("m", number=4, weights="b" * 64)
    (found,) = [finding for finding in check_replicas() if finding.name.startswith("weights")]
    assert (found.name, found.level) == ("weights m", Level.WARN)
    assert "m-1 aaaaaaaaaaaa, m-2 aaaaaaaaaaaa, m-4 bbbbbbbbbbbb" in found.found
    table = subprocess.run(
        [sys.executable, "-m", "inference.replicas"],
        cwd=REPOSITORY, env={**os.environ, "REDIS_URL": settings.REDIS_URL}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert ["others differ" in line for line in table.splitlines()] == [True, True, False, True]


def test_secrets_that_others_can_read_are_found() -> None:
    path = settings.STATE_DIR / "secrets.json"
    path.write_text("{}")
    try:
        path.chmod(0o644)
        assert check_secrets()[0].level is Level.FAIL
        path.chmod(0o600)
        assert check_secrets()[0].level is Level.OK
    finally:
        path.unlink()


@pytest.mark.django_db
def test_the_command_lists_everything_and_its_status_tells_programs() -> None:
    out = StringIO()
    with pytest.raises(SystemExit) as left:
        call_command("doctor", "--json", stdout=out)
    assert left.value.code == 1
    names = {entry["name"] for entry in json.loads(out.getvalue())}
    assert {"python", "secrets", "postgres", "extensions", "valkey", "queue ocr", "models", "runners", "disk"} <= names


def test_a_check_that_breaks_does_not_end_the_checkup() -> None:
    # No database is allowed in this test, so that every check that asks it breaks.
    found = by_name(examine())
    assert found["migrations"].level is Level.FAIL
    assert found["migrations"].advice == "The check itself broke."
    assert found["python"].level is Level.OK


def test_without_servers_it_answers_at_once_and_says_what_to_start() -> None:
    environment = {"DATABASE_URL": "postgresql://parley:x@127.0.0.1:9/parley", "REDIS_URL": "redis://127.0.0.1:9/0"}
    done = subprocess.run(
        [sys.executable, "manage.py", "doctor"],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "make up" in done.stdout
    assert "unknown: no postgres" in done.stdout
