"""Addresses that stream, ahead of Django's own URL map."""

from __future__ import annotations

from typing import Any

from django.urls import path

from apps.conversations.realtime.notifications import NotificationConsumer
from apps.conversations.realtime.sse import run_events

http_routes: list[Any] = [path("api/runs/<uuid:run_id>/events", run_events)]  # type: ignore[arg-type]
websocket_routes: list[Any] = [path("ws/notifications", NotificationConsumer.as_asgi())]
