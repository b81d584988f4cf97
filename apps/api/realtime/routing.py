"""Addresses of the OpenAI-compatible API, ahead of Django's own URL map."""

from __future__ import annotations

from typing import Any

from django.urls import re_path

from apps.api.realtime.app import v1

http_routes: list[Any] = [re_path(r"^v1(?:/|$)", v1)]  # type: ignore[arg-type]
