"""Migrations, queues and their consumers, models and their replicas."""

from __future__ import annotations

from celery import current_app
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from apps.core.checkup.types import Finding, fail, ok, warn
from apps.core.valkey import valkey
from inference.client import read_models, read_records
from inference.registry import mixed_weights

QUEUES = ("ingest", "ocr", "embed", "default")
ANSWER_WITHIN = 1.5


def check_migrations() -> list[Finding]:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        names = ", ".join(f"{migration.app_label}.{migration.name}" for migration, _ in plan[:4])
        return [fail("migrations", f"{len(plan)} pending: {names}", "python manage.py migrate (make up does it)")]
    return [ok("migrations", "none pending")]


def check_queues() -> list[Finding]:
    """Each queue has a worker that reads it, and how much waits in it."""
    waiting = {queue: int(valkey().llen(queue)) for queue in QUEUES}
    answers = current_app.control.inspect(timeout=ANSWER_WITHIN).active_queues() or {}
    served = {queue["name"] for queues in answers.values() for queue in queues}
    findings = []
    for queue, length in waiting.items():
        name, found = f"queue {queue}", f"{length} waiting"
        if queue in served:
            findings.append(ok(name, found))
        else:
            advice = f"Start a worker: celery -A apps.config.celery worker -Q {queue} (make up does it)"
            findings.append(fail(name, f"{found}, no worker reads it", advice))
    return findings


def check_replicas() -> list[Finding]:
    models = read_models(valkey())
    if not models:
        advice = "Start `python -m inference.supervisor` (make up does it), or set PARLEY_REPLICA_URLS."
        return [fail("models", "none is known", advice)]
    findings = []
    for model in models:
        name, found = f"model {model.id}", f"{model.replicas_ready} of {model.replicas_total} replicas ready"
        if model.state == "ready":
            findings.append(ok(name, found))
        elif model.state == "loading":
            left = f", about {model.eta_s} s left" if model.eta_s else ""
            findings.append(warn(name, f"{found}{left}", "It is loading; wait."))
        else:
            findings.append(fail(name, found, f"{model.note or 'Its replicas do not answer'}; see inference.log."))
    return findings + _mixed_weights()


def _mixed_weights() -> list[Finding]:
    """Replicas that should say the same and do not have the same weights."""
    findings = []
    for model, digests in mixed_weights(read_records(valkey())).items():
        told = ", ".join(f"{id} {digest[:12]}" for id, digest in sorted(digests.items())[:8])
        advice = "Give all replicas of one id the same weights, or each version an id of its own."
        findings.append(warn(f"weights {model}", f"its replicas have different ones: {told}", advice))
    return findings
