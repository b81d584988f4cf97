"""HTTP of files: parse, call, serialise. Bytes of uploads and downloads do not pass here; signed addresses do."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.http import HttpResponse, HttpResponseRedirect
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.public import actor_of
from apps.files import selectors, services
from apps.files.api import serializers as shapes
from apps.files.lifecycle import quotas, receipts
from apps.files.pipeline import previews
from apps.files.services import UploadInfo
from apps.files.summaries.requests import ask_for_summary, get_summary

DEFAULT_LIMIT = 50
DEFAULT_WIDTH = 1200
_FOREVER = "private, max-age=31536000, immutable"


def checked(shape: type[serializers.Serializer[Any]], request: Request) -> dict[str, Any]:
    parsed = shape(data=request.data)
    parsed.is_valid(raise_exception=True)
    return dict(parsed.validated_data)


def bounded(request: Request, name: str, default: int, most: int) -> int:
    """A positive number of the query, no larger than `most`; the default when it is missing or no number."""
    value = request.query_params.get(name, "")
    return min(most, max(1, int(value))) if value.isdecimal() and len(value) < 10 else default


def upload_view(upload: UploadInfo) -> dict[str, Any]:
    return {
        "part_size": upload.part_size,
        "parts": [{"number": part.number, "url": part.url, "size": part.size} for part in upload.parts],
        "expires_at": upload.expires_at,
        "received": [{"number": part.number, "etag": part.etag, "size": part.size} for part in upload.received],
    }


class FilesView(APIView):
    @extend_schema(
        summary="List files, newest first",
        parameters=[OpenApiParameter("cursor", str), OpenApiParameter("limit", int)],
        responses=shapes.FilePageSerializer,
    )
    def get(self, request: Request) -> Response:
        limit = bounded(request, "limit", DEFAULT_LIMIT, selectors.LIST_LIMIT)
        files, after = selectors.list_files(actor_of(request), cursor=request.query_params.get("cursor"), limit=limit)
        return Response({"results": [file.as_json() for file in files], "next": after})

    @extend_schema(
        summary="Begin an upload",
        description="Then PUT each part to its address and call `complete`.",
        request=shapes.NewFileSerializer,
        responses={201: shapes.StartedUploadSerializer},
    )
    def post(self, request: Request) -> Response:
        body = checked(shapes.NewFileSerializer, request)
        file, upload = services.create_upload(actor_of(request), name=body["name"], size=body["size"])
        return Response({"file": file.as_json(), "upload": upload_view(upload)}, status=201)


class UsageView(APIView):
    @extend_schema(
        summary="How much is kept, and how much may be",
        description="Of one's own and of the organization. Announced uploads count, deleted files do not.",
        responses=shapes.FileUsageSerializer,
    )
    def get(self, request: Request) -> Response:
        mine, everybody = quotas.usage(actor_of(request))
        return Response({"mine": mine.as_json(), "organization": everybody.as_json()})


class FileView(APIView):
    @extend_schema(summary="Read a file's state", responses=shapes.FileSerializer)
    def get(self, request: Request, file_id: UUID) -> Response:
        return Response(selectors.get_file(actor_of(request), file_id).as_json())

    @extend_schema(summary="Delete a file and all that was derived from it", responses={204: None})
    def delete(self, request: Request, file_id: UUID) -> Response:
        services.delete_file(actor_of(request), file_id)
        return Response(status=204)


class ReceiptView(APIView):
    @extend_schema(summary="What the deletion of a file removed", responses=shapes.ReceiptSerializer)
    def get(self, request: Request, file_id: UUID) -> Response:
        return Response(asdict(receipts.get_receipt(actor_of(request), file_id)))


class UploadView(APIView):
    @extend_schema(summary="Resume an upload", responses=shapes.UploadSerializer)
    def get(self, request: Request, file_id: UUID) -> Response:
        return Response(upload_view(services.resume_upload(actor_of(request), file_id)))


class CompleteView(APIView):
    @extend_schema(summary="Complete an upload", request=shapes.CompleteSerializer, responses=shapes.FileSerializer)
    def post(self, request: Request, file_id: UUID) -> Response:
        parts = [(part["number"], part["etag"]) for part in checked(shapes.CompleteSerializer, request)["parts"]]
        return Response(services.complete_upload(actor_of(request), file_id, parts=parts).as_json())


class PasswordView(APIView):
    @extend_schema(
        summary="Open a protected file with its password",
        description="For a file in the state `needs_password`. The password is used once and kept nowhere.",
        request=shapes.PasswordSerializer,
        responses=shapes.FileSerializer,
    )
    def post(self, request: Request, file_id: UUID) -> Response:
        password = checked(shapes.PasswordSerializer, request)["password"]
        return Response(services.unlock_file(actor_of(request), file_id, password=password).as_json())


class CancelView(APIView):
    @extend_schema(summary="Stop reading; what was read stays usable", request=None, responses=shapes.FileSerializer)
    def post(self, request: Request, file_id: UUID) -> Response:
        return Response(services.cancel_file(actor_of(request), file_id).as_json())


class RetryView(APIView):
    @extend_schema(summary="Read again what failed", request=None, responses=shapes.FileSerializer)
    def post(self, request: Request, file_id: UUID) -> Response:
        return Response(services.retry_file(actor_of(request), file_id).as_json())


class SummaryView(APIView):
    @extend_schema(summary="Read a file's summary, or how far it is", responses=shapes.SummarySerializer)
    def get(self, request: Request, file_id: UUID) -> Response:
        return Response(get_summary(actor_of(request), file_id).as_json())

    @extend_schema(
        summary="Summarise a file",
        description="Answers 200 with a summary that is there already, else 202, and a model begins with it. "
        "Ask again, or GET, to see how far it is.",
        request=None,
        responses={200: shapes.SummarySerializer, 202: shapes.SummarySerializer},
    )
    def post(self, request: Request, file_id: UUID) -> Response:
        summary = ask_for_summary(actor_of(request), file_id)
        return Response(summary.as_json(), status=200 if summary.state == "ready" else 202)


class ContentView(APIView):
    @extend_schema(
        summary="Download the file",
        responses={302: OpenApiResponse(description="`Location` is an address that works for a few minutes.")},
    )
    def get(self, request: Request, file_id: UUID) -> HttpResponse:
        response = HttpResponseRedirect(services.content_url(actor_of(request), file_id))
        response["Cache-Control"] = "no-store"
        return response


class PagesView(APIView):
    @extend_schema(summary="List a file's pages", responses=shapes.PageListSerializer)
    def get(self, request: Request, file_id: UUID) -> Response:
        pages = selectors.list_pages(actor_of(request), file_id)
        return Response({"results": [page.as_json() for page in pages]})


class PageView(APIView):
    @extend_schema(summary="Read one page's text", responses=shapes.PageTextSerializer)
    def get(self, request: Request, file_id: UUID, number: int) -> Response:
        return Response(selectors.get_page(actor_of(request), file_id, number).as_json())


class PageImageView(APIView):
    @extend_schema(
        summary="A picture of one page",
        parameters=[OpenApiParameter("width", int, description="Pixels, rounded up to one of a few sizes.")],
        responses={(200, "image/png"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, file_id: UUID, number: int) -> HttpResponse:
        width = bounded(request, "width", DEFAULT_WIDTH, previews.WIDTHS[-1])
        preview = previews.access_preview(actor_of(request), file_id, number, width=width)
        headers = {"ETag": preview.etag, "Cache-Control": _FOREVER, "X-Content-Type-Options": "nosniff"}
        if request.headers.get("If-None-Match") == preview.etag:
            return HttpResponse(status=304, headers=headers)
        return HttpResponse(previews.picture(preview), content_type="image/png", headers=headers)
