"""Addresses of the console that stand before Django's own admin addresses."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from apps.operations.metrics import metrics
from apps.operations.views import replicas, sign_in

urlpatterns = [
    path("metrics", metrics),
    path("admin/login/", sign_in, name="console_sign_in"),
    path("admin/replicas/", admin.site.admin_view(replicas), name="console_replicas"),
]
