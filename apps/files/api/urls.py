from __future__ import annotations

from django.urls import path

from apps.files.api import tables, views

urlpatterns = [
    path("api/files", views.FilesView.as_view()),
    path("api/files/usage", views.UsageView.as_view()),
    path("api/files/<uuid:file_id>", views.FileView.as_view()),
    path("api/files/<uuid:file_id>/receipt", views.ReceiptView.as_view()),
    path("api/files/<uuid:file_id>/upload", views.UploadView.as_view()),
    path("api/files/<uuid:file_id>/complete", views.CompleteView.as_view()),
    path("api/files/<uuid:file_id>/password", views.PasswordView.as_view()),
    path("api/files/<uuid:file_id>/cancel", views.CancelView.as_view()),
    path("api/files/<uuid:file_id>/retry", views.RetryView.as_view()),
    path("api/files/<uuid:file_id>/summary", views.SummaryView.as_view()),
    path("api/files/<uuid:file_id>/content", views.ContentView.as_view()),
    path("api/files/<uuid:file_id>/tables", tables.TablesView.as_view()),
    path("api/files/<uuid:file_id>/tables/<int:number>", tables.TableView.as_view()),
    path("api/files/<uuid:file_id>/query", tables.QueryView.as_view()),
    path("api/files/<uuid:file_id>/pages", views.PagesView.as_view()),
    path("api/files/<uuid:file_id>/pages/<int:number>", views.PageView.as_view()),
    path("api/files/<uuid:file_id>/pages/<int:number>/image", views.PageImageView.as_view()),
]
