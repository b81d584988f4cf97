"""HTTP of tables: what a file has, its rows in pages, and questions in SQL."""

from __future__ import annotations

from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.public import actor_of
from apps.files.api import serializers as shapes
from apps.files.api.views import bounded, checked
from apps.files.tables.queries import MAX_ROWS, list_tables, query_table, read_rows

DEFAULT_ROWS = 100
_LAST_OFFSET = 100_000_000


class TablesView(APIView):
    @extend_schema(summary="List a file's tables", responses=shapes.TableListSerializer)
    def get(self, request: Request, file_id: UUID) -> Response:
        return Response({"results": [table.as_json() for table in list_tables(actor_of(request), file_id)]})


class TableView(APIView):
    @extend_schema(
        summary="Read rows of a table",
        parameters=[OpenApiParameter("offset", int), OpenApiParameter("limit", int)],
        responses=shapes.TableAnswerSerializer,
    )
    def get(self, request: Request, file_id: UUID, number: int) -> Response:
        offset = bounded(request, "offset", 0, _LAST_OFFSET) if request.query_params.get("offset", "0") != "0" else 0
        limit = bounded(request, "limit", DEFAULT_ROWS, MAX_ROWS)
        return Response(read_rows(actor_of(request), file_id, number, offset=offset, limit=limit).as_json())


class QueryView(APIView):
    @extend_schema(
        summary="Ask a file's tables in SQL",
        description="One SELECT, read-only, with bounds on time, memory and rows. `SELECT *` leaves `_row` out, the "
        "number of each row in its sheet.",
        request=shapes.TableQuestionSerializer,
        responses=shapes.TableAnswerSerializer,
    )
    def post(self, request: Request, file_id: UUID) -> Response:
        sql = checked(shapes.TableQuestionSerializer, request)["sql"]
        return Response(query_table(actor_of(request), [file_id], sql=sql).as_json())
