"""Addresses of the accounts API. Signing in and out is allauth's, under `/_allauth/`."""

from __future__ import annotations

from django.urls import path

from apps.accounts.api.views import KeysView, KeyView, MeView, SiteView

urlpatterns = [
    path("api/site", SiteView.as_view()),
    path("api/me", MeView.as_view()),
    path("api/keys", KeysView.as_view()),
    path("api/keys/<uuid:key_id>", KeyView.as_view()),
]
