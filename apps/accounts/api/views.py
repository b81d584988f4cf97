"""`/api/site`, `/api/me` and `/api/keys`."""

from __future__ import annotations

from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.middleware.csrf import get_token
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.permissions import AllowAny, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.api.authentication import IsPerson
from apps.accounts.api.serializers import (
    CreateKeySerializer,
    KeyListSerializer,
    MeSerializer,
    NewKeySerializer,
    RenameSerializer,
    SiteSerializer,
    key_body,
    me_body,
    new_key_body,
)
from apps.accounts.public.identity import actor_of, forget_key
from apps.accounts.selectors import get_account, has_accounts, list_keys
from apps.accounts.services import create_key, rename_account, revoke_key
from apps.accounts.types import Scope

_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


class SiteView(APIView):
    """What a page needs before anybody has signed in."""

    permission_classes = (AllowAny,)
    authentication_classes = ()

    @extend_schema(
        tags=["site"],
        operation_id="site",
        summary="This server",
        auth=[],
        responses=SiteSerializer,
        examples=[
            OpenApiExample(
                "A fresh server",
                {
                    "name": "Parley",
                    "version": "0.1.0",
                    "setup_needed": True,
                    "signup": "first",
                    "needs_https": False,
                    "mail": False,
                },
            )
        ],
    )
    def get(self, request: Request) -> Response:
        """Also sets the `csrftoken` cookie, whose value every later write repeats in `X-CSRFToken`."""
        get_token(request._request)
        host = urlsplit(f"//{request._request.get_host()}").hostname
        return Response(
            {
                "name": "Parley",
                "version": settings.VERSION,
                "setup_needed": not has_accounts(),
                "signup": settings.SIGNUP_POLICY,
                "needs_https": not request._request.is_secure() and host not in _LOCAL_HOSTS,
                "mail": settings.MAIL_CONFIGURED,
            }
        )


class MeView(APIView):
    """One's own account."""

    @extend_schema(tags=["account"], operation_id="me", summary="Your account", responses=MeSerializer)
    def get(self, request: Request) -> Response:
        return Response(me_body(get_account(actor_of(request))))

    @extend_schema(
        tags=["account"],
        operation_id="rename_me",
        summary="Change your name",
        request=RenameSerializer,
        responses=MeSerializer,
        examples=[OpenApiExample("Rename", {"name": "Ada Lovelace"}, request_only=True)],
    )
    def patch(self, request: Request) -> Response:
        form = RenameSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        rename_account(actor_of(request), name=form.validated_data["name"])
        return self.get(request)


class KeysView(APIView):
    """One's own API keys."""

    permission_classes = (IsAuthenticated, IsPerson)

    @extend_schema(tags=["keys"], operation_id="list_keys", summary="Your API keys", responses=KeyListSerializer)
    def get(self, request: Request) -> Response:
        return Response({"results": [key_body(key) for key in list_keys(actor_of(request))], "next": None})

    @extend_schema(
        tags=["keys"],
        operation_id="create_key",
        summary="Make an API key",
        request=CreateKeySerializer,
        responses={201: NewKeySerializer},
        examples=[
            OpenApiExample(
                "A key for a script",
                {"name": "nightly report", "expires_in_days": 90, "scopes": ["inference"]},
                request_only=True,
            )
        ],
    )
    def post(self, request: Request) -> Response:
        """The answer holds the whole key, this once. Only a signed-in person may make keys, not a key itself."""
        form = CreateKeySerializer(data=request.data)
        form.is_valid(raise_exception=True)
        new = create_key(
            actor_of(request),
            name=form.validated_data["name"],
            expires_in_days=form.validated_data.get("expires_in_days"),
            scopes=tuple(Scope(scope) for scope in form.validated_data.get("scopes", (Scope.FULL,))),
        )
        return Response(new_key_body(new), status=201, headers={"Cache-Control": "no-store"})


class KeyView(APIView):
    permission_classes = (IsAuthenticated, IsPerson)

    @extend_schema(tags=["keys"], operation_id="revoke_key", summary="Revoke an API key", responses={204: None})
    def delete(self, request: Request, key_id: UUID) -> Response:
        """REST requests with the key fail at once; streams that it opened may take up to three seconds to notice."""
        forget_key(revoke_key(actor_of(request), key_id))
        return Response(status=204)
