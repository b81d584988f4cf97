"""The web process: streams by their own endpoints, everything else by Django in a pool of threads."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings.dev")

from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import re_path

from apps.core.bridge import ThreadedDjango

django_app = ThreadedDjango(get_wsgi_application(), threads=settings.WEB_THREADS)

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
