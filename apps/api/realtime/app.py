"""The `/v1` application: authenticate, find the endpoint, turn every error into OpenAI's shape."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import structlog

from apps.accounts.public import Allowance, actor_of_scope
from apps.accounts.types import Actor, Scope
from apps.api.realtime.answer import error_chunk
from apps.api.realtime.chat import chat_completions, rate_headers
from apps.api.realtime.errors import ApiError, from_exception
from apps.api.realtime.exchange import ClientGone, Exchange, Receive, Send
from apps.api.realtime.exchange import Scope as AsgiScope
from apps.api.selectors import get_model, list_models
from apps.core.db import in_db
from apps.core.errors import NotAuthenticated, RateLimited

Endpoint = Callable[[Exchange, Actor], Awaitable[None]]
_MODEL_PREFIX: Final = "/v1/models/"
_NO_KEY = "No API key was sent. Make one in Parley's settings and send it as `Authorization: Bearer pk_...`."
_BAD_KEY = "This API key is not valid. It may be mistyped, expired or revoked."


async def _models(exchange: Exchange, actor: Actor) -> None:
    await exchange.send_json(200, await in_db(list_models, actor.policy))


async def _model(exchange: Exchange, actor: Actor) -> None:
    name = exchange.scope["path"].removeprefix(_MODEL_PREFIX)
    await exchange.send_json(200, await in_db(get_model, actor.policy, name))


ENDPOINTS: Final[dict[str, dict[str, Endpoint]]] = {
    "/v1/chat/completions": {"POST": chat_completions},
    "/v1/models": {"GET": _models},
    "/v1/models/{model}": {"GET": _model},
}
"""Every address below /v1, in the form that the schema and the authorization matrix use."""


async def v1(scope: AsgiScope, receive: Receive, send: Send) -> None:
    """ASGI endpoint for everything below `/v1`."""
    exchange = Exchange(scope, receive, send)
    structlog.contextvars.bind_contextvars(request_id=exchange.id)
    try:
        await _serve(exchange)
    except ClientGone:
        return
    except Exception as error:  # noqa: BLE001  the edge: everything becomes a response
        await _fail(exchange, error)
    finally:
        await exchange.close()


async def _serve(exchange: Exchange) -> None:
    actor = await actor_of_scope(exchange.scope, needs=Scope.INFERENCE)
    if actor is None or actor.via != "api_key":
        raise NotAuthenticated(_BAD_KEY if exchange.header(b"authorization") else _NO_KEY)
    methods = ENDPOINTS.get(_template(exchange.scope["path"]))
    if methods is None:
        await exchange.send_error(_unknown(exchange, 404))
        return
    endpoint = methods.get(exchange.scope["method"])
    if endpoint is None:
        await exchange.send_error(_unknown(exchange, 405), {"allow": ", ".join(methods)})
        return
    await endpoint(exchange, actor)


def _template(path: str) -> str:
    if path.startswith(_MODEL_PREFIX) and len(path) > len(_MODEL_PREFIX):
        return f"{_MODEL_PREFIX}{{model}}"
    return path.rstrip("/")


def _unknown(exchange: Exchange, status: int) -> ApiError:
    where = f"{exchange.scope['method']} {exchange.scope['path'][:200]}"
    return ApiError(status, f"Unknown request: {where}. See /api/docs for what there is.", "unknown_url")


async def _fail(exchange: Exchange, error: Exception) -> None:
    shown = from_exception(error, exchange.id)
    headers: dict[str, Any] = {}
    if isinstance(error, RateLimited) and "limit" in error.extra:
        headers = rate_headers(Allowance(error.extra["limit"], 0, error.extra["retry_after_s"]))
    if exchange.started:
        await exchange.write(error_chunk(shown.body), last=True)
        return
    await exchange.send_error(shown, headers)
