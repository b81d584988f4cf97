"""The web process: streams by their own endpoints, everything else by Django."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings.dev")

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application
from django.urls import re_path

django_app = get_asgi_application()

from apps.api.realtime.routing import http_routes as api_routes  # noqa: E402
from apps.conversations.realtime.routing import http_routes, websocket_routes  # noqa: E402
from apps.files.api.objects import application as objects  # noqa: E402

_rest = [re_path(r"^storage/", objects), re_path(r"", django_app)]  # type: ignore[arg-type]

application = ProtocolTypeRouter(
    {
        "http": URLRouter([*http_routes, *api_routes, *_rest]),
        "websocket": URLRouter(websocket_routes),
    }
)
