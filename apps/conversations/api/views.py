"""HTTP of conversations, messages and runs: parse, call, serialise."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.public import actor_of
from apps.conversations import selectors
from apps.conversations.access import access_run
from apps.conversations.api import serializers as shapes
from apps.conversations.services import conversations, posting, runs
from apps.conversations.services.admission import place_in_line
from apps.conversations.services.routing import usable_models
from apps.core.errors import Invalid
from inference.client import AUTO

MAX_KEY = 200


def checked(shape: type[serializers.Serializer[Any]], request: Request) -> dict[str, Any]:
    parsed = shape(data=request.data)
    parsed.is_valid(raise_exception=True)
    return dict(parsed.validated_data)


def flag(request: Request, name: str) -> bool:
    return request.query_params.get(name, "").lower() in {"1", "true", "yes"}


def idempotency_key(request: Request) -> str | None:
    """The `Idempotency-Key` header. Raises Invalid when it is too long."""
    key = request.headers.get("Idempotency-Key")
    if key and len(key) > MAX_KEY:
        raise Invalid(f"Idempotency-Key is longer than {MAX_KEY} characters.")
    return key or None


def request_id(request: Request) -> str:
    return str(request.META.get("parley.request_id", ""))


class ConversationsView(APIView):
    @extend_schema(
        summary="List conversations",
        parameters=[
            OpenApiParameter("archived", bool),
            OpenApiParameter("deleted", bool),
            OpenApiParameter("q", str, description="Part of the title."),
            OpenApiParameter("cursor", str),
            OpenApiParameter("limit", int),
        ],
        responses=shapes.ConversationPageSerializer,
    )
    def get(self, request: Request) -> Response:
        params = request.query_params
        limit = params.get("limit", "")
        return Response(
            selectors.list_conversations(
                actor_of(request),
                archived=flag(request, "archived"),
                deleted=flag(request, "deleted"),
                query=params.get("q", ""),
                cursor=params.get("cursor"),
                limit=int(limit[:9]) if limit.isdecimal() else selectors.PAGE,
            )
        )

    @extend_schema(
        summary="Create a conversation",
        description="A retry (same `Idempotency-Key`, same body) answers 200 with the first one.",
        parameters=[OpenApiParameter("Idempotency-Key", str, OpenApiParameter.HEADER)],
        request=shapes.NewConversationSerializer,
        responses={201: shapes.ConversationSerializer, 200: shapes.ConversationSerializer},
    )
    def post(self, request: Request) -> Response:
        body = checked(shapes.NewConversationSerializer, request)
        view, created = conversations.create_conversation(
            actor_of(request), title=body["title"], key=idempotency_key(request)
        )
        return Response(view, status=201 if created else 200)


class ConversationView(APIView):
    @extend_schema(summary="Read a conversation", responses=shapes.ConversationSerializer)
    def get(self, request: Request, conversation_id: UUID) -> Response:
        return Response(selectors.get_conversation(actor_of(request), conversation_id))

    @extend_schema(
        summary="Rename, pin, archive, or switch branch",
        request=shapes.ConversationChangeSerializer,
        responses=shapes.ConversationSerializer,
    )
    def patch(self, request: Request, conversation_id: UUID) -> Response:
        body = checked(shapes.ConversationChangeSerializer, request)
        return Response(conversations.update_conversation(actor_of(request), id=conversation_id, **body))

    @extend_schema(summary="Delete a conversation", description="Restorable for 30 days.", responses={204: None})
    def delete(self, request: Request, conversation_id: UUID) -> Response:
        actor = actor_of(request)
        active = conversations.delete_conversation(actor, id=conversation_id)
        runs.cancel_runs_of(actor.user_id, active)
        return Response(status=204)


class RestoreView(APIView):
    @extend_schema(summary="Restore a deleted conversation", request=None, responses=shapes.ConversationSerializer)
    def post(self, request: Request, conversation_id: UUID) -> Response:
        return Response(conversations.restore_conversation(actor_of(request), id=conversation_id))


class BranchView(APIView):
    @extend_schema(
        summary="Branch into a new conversation",
        request=shapes.BranchSerializer,
        responses={201: shapes.ConversationSerializer},
    )
    def post(self, request: Request, conversation_id: UUID) -> Response:
        body = checked(shapes.BranchSerializer, request)
        copy = conversations.branch_conversation(actor_of(request), id=conversation_id, message_id=body["message_id"])
        return Response(copy, status=201)


class MessagesView(APIView):
    @extend_schema(
        summary="Read the message tree",
        parameters=[OpenApiParameter("cursor", str)],
        responses=shapes.MessagePageSerializer,
    )
    def get(self, request: Request, conversation_id: UUID) -> Response:
        after = selectors.latest_cursor(request.query_params.get("cursor"))
        return Response(selectors.list_messages(actor_of(request), conversation_id, after_seq=after))

    @extend_schema(
        summary="Ask",
        description="Writes the question, its empty answer and the run. A retry (same client id or "
        "`Idempotency-Key`, same body) answers 200 with the first result.",
        parameters=[OpenApiParameter("Idempotency-Key", str, OpenApiParameter.HEADER)],
        request=shapes.NewMessageSerializer,
        responses={201: shapes.PostedSerializer, 200: shapes.PostedSerializer},
    )
    def post(self, request: Request, conversation_id: UUID) -> Response:
        body = checked(shapes.NewMessageSerializer, request)
        question = posting.Question(conversation_id=conversation_id, **{**body, "file_ids": tuple(body["file_ids"])})
        posted = posting.post_message(
            actor_of(request), question, key=idempotency_key(request), request_id=request_id(request)
        )
        return Response(posted.view, status=201 if posted.created else 200)


class RegenerateView(APIView):
    @extend_schema(
        summary="Generate another answer",
        description="A retry (same `Idempotency-Key`, or without one the same client id) answers 200 with the first "
        "result.",
        parameters=[OpenApiParameter("Idempotency-Key", str, OpenApiParameter.HEADER)],
        request=shapes.RegenerateSerializer,
        responses={201: shapes.RegeneratedSerializer, 200: shapes.RegeneratedSerializer},
    )
    def post(self, request: Request, conversation_id: UUID, message_id: UUID) -> Response:
        body = checked(shapes.RegenerateSerializer, request)
        posted = posting.regenerate(
            actor_of(request),
            conversation_id=conversation_id,
            answer_id=message_id,
            key=idempotency_key(request),
            request_id=request_id(request),
            **body,
        )
        return Response(posted.view, status=201 if posted.created else 200)


class RunView(APIView):
    @extend_schema(summary="Read a run and how it came about", responses=shapes.RunDetailSerializer)
    def get(self, request: Request, run_id: UUID) -> Response:
        run = access_run(actor_of(request), run_id)
        return Response(selectors.run_detail_view(run) | place_in_line(run))


class CancelRunView(APIView):
    @extend_schema(
        summary="Stop a run", description="Keeps what was written. Idempotent.", request=None,
        responses=shapes.RunDetailSerializer,
    )  # fmt: skip
    def post(self, request: Request, run_id: UUID) -> Response:
        return Response(runs.cancel_run(actor_of(request), run_id))


class RunContextView(APIView):
    @extend_schema(summary="Read exactly what the model was sent", responses=shapes.RunContextSerializer)
    def get(self, request: Request, run_id: UUID) -> Response:
        return Response(selectors.run_context(actor_of(request), run_id))


class ModelsView(APIView):
    @extend_schema(summary="List models", responses=shapes.ModelListSerializer)
    def get(self, request: Request) -> Response:
        results = [selectors.model_view(model) for model in usable_models(actor_of(request).policy)]
        return Response({"results": results, "default": AUTO})


class EventsSchemaView(APIView):
    """Documents the stream; requests are served by the ASGI endpoint before Django sees them."""

    @extend_schema(
        summary="Follow a run (server-sent events)",
        parameters=[
            OpenApiParameter("starting_after", int),
            OpenApiParameter("Last-Event-ID", int, OpenApiParameter.HEADER),
        ],
        responses={
            (200, "text/event-stream"): OpenApiResponse(str, "Events with `id:` their number; the last is `done`."),
            410: OpenApiResponse(description="The events are no longer kept; `message` is the final answer."),
        },
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        access_run(actor_of(request), run_id)
        raise Invalid("Streams need the ASGI server.")
