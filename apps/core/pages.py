"""The built chat page and the liveness check."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe

_NOT_BUILT = "<!doctype html><title>Parley</title><p>The page is not built yet. Run <code>make up</code>."


@lru_cache(maxsize=1)
def _page(path: Path, modified: float) -> str:
    return path.read_text()


@require_safe
@ensure_csrf_cookie
def app_page(request: HttpRequest) -> HttpResponse:
    """The single page of the chat UI, for every address it routes itself."""
    path = settings.FRONTEND_DIST / "index.html"
    if not path.exists():
        return HttpResponse(_NOT_BUILT, status=503)
    return HttpResponse(_page(path, path.stat().st_mtime), headers={"Cache-Control": "no-cache"})


@require_safe
def health(request: HttpRequest) -> JsonResponse:
    """Ready when Postgres answers; Valkey may be away (streams then read from Postgres)."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return JsonResponse({"ok": True})
