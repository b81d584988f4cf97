"""URL map of the web process. Streams (SSE, WebSocket) are routed in asgi.py before Django sees them."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path, re_path

from apps.core.pages import app_page, health

handler404 = "apps.core.http.not_found"
handler500 = "apps.core.http.server_error"

urlpatterns = [
    path("healthz", health),
    path("", include("apps.operations.urls")),
    path("admin/", admin.site.urls),
    path("_allauth/", include("allauth.headless.urls")),
    path("accounts/", include("allauth.urls")),
    path("", include("apps.accounts.api.urls")),
    path("", include("apps.conversations.api.urls")),
    path("", include("apps.files.api.urls")),
    path("", include("apps.api.urls")),
    re_path(r"^(?!api/|v1/|static/|storage/|_allauth/|admin/|ws/)(?!.*\.\w+$).*$", app_page),
]
