"""The schema and its docs page. `/v1` itself is served ahead of Django, see `realtime.routing`."""

from __future__ import annotations

from django.urls import path
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView

urlpatterns = [
    path("api/schema", SpectacularJSONAPIView.as_view(), name="schema"),
    # Split: the page's script has an address of its own, so that the policy needs no inline script.
    path("api/docs", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="docs"),
]
