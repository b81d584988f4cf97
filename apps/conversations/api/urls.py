from __future__ import annotations

from django.urls import path

from apps.conversations.api import views

urlpatterns = [
    path("api/models", views.ModelsView.as_view()),
    path("api/conversations", views.ConversationsView.as_view()),
    path("api/conversations/<uuid:conversation_id>", views.ConversationView.as_view()),
    path("api/conversations/<uuid:conversation_id>/restore", views.RestoreView.as_view()),
    path("api/conversations/<uuid:conversation_id>/branch", views.BranchView.as_view()),
    path("api/conversations/<uuid:conversation_id>/messages", views.MessagesView.as_view()),
    path(
        "api/conversations/<uuid:conversation_id>/messages/<uuid:message_id>/regenerate",
        views.RegenerateView.as_view(),
    ),
    path("api/runs/<uuid:run_id>", views.RunView.as_view()),
    path("api/runs/<uuid:run_id>/cancel", views.CancelRunView.as_view()),
    path("api/runs/<uuid:run_id>/context", views.RunContextView.as_view()),
    path("api/runs/<uuid:run_id>/events", views.EventsSchemaView.as_view()),
]
