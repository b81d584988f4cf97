"""Pages of the console that are not a table of rows: signing in, and the replicas."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import redis
from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_safe

from apps.core.valkey import valkey
from inference.client import read_models, read_records
from inference.registry import Record, mixed_weights

CONSOLE = "/admin/"


def sign_in(request: HttpRequest) -> HttpResponse:
    """The console has no sign-in of its own: the app's, with its limits, serves both."""
    if request.user.is_authenticated:
        return render(request, "operations/not_an_operator.html", status=403)
    wanted = request.GET.get("next", CONSOLE)
    if not url_has_allowed_host_and_scheme(wanted, allowed_hosts=None):
        wanted = CONSOLE
    return HttpResponseRedirect(f"{settings.LOGIN_URL}?{urlencode({'next': wanted})}")


@require_safe
def replicas(request: HttpRequest) -> HttpResponse:
    """Every replica and model of the registry, as they were last heard of."""
    context: dict[str, Any] = {**admin.site.each_context(request), "title": "Replicas", "away": False}
    try:
        context["models"] = read_models(valkey())
        records = read_records(valkey())
        context |= {"replicas": [_row(record) for record in records], "mixed": sorted(mixed_weights(records))}
    except redis.RedisError:
        context |= {"away": True, "models": (), "replicas": [], "mixed": []}
    return render(request, "operations/replicas.html", context)


def _row(record: Record) -> dict[str, Any]:
    replica = record.replica
    kv = replica.kv_used_ratio
    return {
        "id": replica.id,
        "model": replica.model,
        "url": replica.url,
        "kind": replica.kind,
        "state": replica.state,
        "version": replica.version or "-",
        "weights": replica.weights_digest[:12] or "-",
        "load": f"{replica.running} + {replica.waiting} waiting / {replica.slots}",
        "kv": "-" if kv is None else f"{kv:.0%}",
        "note": replica.error or replica.phase,
        "heard": datetime.fromtimestamp(replica.updated_at, UTC) if replica.updated_at else None,
    }
