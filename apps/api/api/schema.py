"""The OpenAPI schema: how operations are named and authenticated, and what every one of them can answer."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any, Final

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema

from apps.api.api.examples import REQUESTS
from apps.api.api.v1_schema import v1_components, v1_paths

PROBLEM_TYPE: Final = "application/problem+json"
_METHODS = ("get", "put", "post", "patch", "delete")
_VERBS = {"get": "get", "put": "put", "post": "create", "patch": "update", "delete": "delete"}

PROBLEM: Final[dict[str, Any]] = {
    "type": "object",
    "description": "An error (RFC 9457). Decide by `code`; show `detail` to people; quote `request_id` to support.",
    "required": ["type", "title", "status", "code", "detail", "request_id"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string"},
        "detail": {"type": "string"},
        "request_id": {"type": "string"},
        "retry_after_s": {"type": "number", "description": "With 429 and 503: seconds to wait."},
        "fields": {
            "type": "object",
            "additionalProperties": True,
            "description": "With `invalid`: each field's messages.",
        },
    },
    "additionalProperties": True,
}

_ERRORS: Final[dict[int, tuple[str, str, str]]] = {
    401: ("not_authenticated", "Nobody is signed in, or the key is not valid.", "Sign in, or send a valid API key."),
    403: ("permission_denied", "Not allowed, or the CSRF token is missing.", "You may not do this."),
    404: (
        "not_found",
        "Unknown, deleted, or someone else's: these look the same.",
        "There is nothing here, or you may not see it.",
    ),
    409: ("conflict", "The state of things does not allow it now.", "This answer is still being written."),
    413: ("too_large", "More than the limit.", "The request is larger than 1 MiB. Send long text as a file."),
    422: ("invalid", "A field is wrong; `fields` says which.", "Some fields are not valid."),
    429: ("rate_limited", "Too many requests; `Retry-After` says when.", "Wait a moment, then send again."),
    503: ("overloaded", "No room, no model, or no database now.", "All places are taken. Try again later."),
}


class ActorAuthenticationScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """A session with a CSRF token, or an API key: either will do."""

    target_class = "apps.accounts.api.authentication.ActorAuthentication"
    name = ["apiKey", "session"]  # noqa: RUF012

    def get_security_requirement(self, auto_schema: Any) -> list[dict[str, list[str]]]:
        return [{"apiKey": []}, {"session": []}]

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, Any]]:
        return [
            {"type": "http", "scheme": "bearer", "bearerFormat": "pk_...", "description": "An API key."},
            {
                "type": "apiKey",
                "in": "cookie",
                "name": "sessionid",
                "description": "A signed-in browser. Writes also need the `csrftoken` cookie's value as `X-CSRFToken`.",
            },
        ]


class Schema(AutoSchema):
    """Names operations after their address, e.g. `create_conversation_message`."""

    def get_operation_id(self) -> str:
        parts = [part for part in self.path.strip("/").removeprefix("api/").split("/") if part]
        return operation_name(self.method.lower(), parts)


def operation_name(method: str, parts: list[str]) -> str:
    """A verb and the nouns of an address: singular before an id, plural where a list is meant."""
    words: list[str] = []
    for part, following in zip(parts, [*parts[1:], ""], strict=True):
        if part.startswith("{"):
            continue
        is_one = following.startswith("{") or (not following and method == "post")
        words.append(part.removesuffix("s") if is_one else part)
    is_action = len(parts) > 1 and parts[-2].startswith("{") and not parts[-1].endswith("s")
    if method == "post" and is_action:
        return "_".join([words[-1], *words[:-1]])
    verb = "list" if method == "get" and parts[-1].endswith("s") else _VERBS[method]
    return re.sub(r"\W", "_", "_".join([verb, *words]))


def finish_schema(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Last step of generation: errors and examples for every operation, and the `/v1` addresses."""
    for path, item in result["paths"].items():
        for method in _METHODS:
            if method in item:
                _add_errors(item[method], path)
                _add_example(item[method], method, path)
    components = result.setdefault("components", {}).setdefault("schemas", {})
    components["Problem"] = PROBLEM
    components.update(v1_components())
    result["paths"].update(v1_paths())
    return result


def _add_errors(operation: dict[str, Any], path: str) -> None:
    statuses = [503]
    if operation.get("security", [{}]) != [{}]:
        statuses += [401, 403, 429]
    if "{" in path:
        statuses.append(404)
    if "requestBody" in operation:
        statuses += [409, 413, 422]
    responses = operation.setdefault("responses", {})
    for status in sorted(statuses):
        responses.setdefault(str(status), _problem_response(status))


def _problem_response(status: int) -> dict[str, Any]:
    code, description, detail = _ERRORS[status]
    example = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
        "request_id": "0198f2b7c1c27d3f8a5e4b9d6c7e8f90",
    }
    if status in (429, 503):
        example["retry_after_s"] = 4.2
    if status == 422:
        example["fields"] = {"name": ["This field is required."]}
    schema = {"$ref": "#/components/schemas/Problem"}
    response: dict[str, Any] = {
        "description": description,
        "content": {PROBLEM_TYPE: {"schema": schema, "example": example}},
    }
    if status in (429, 503):
        response["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait."}}
    return response


def _add_example(operation: dict[str, Any], method: str, path: str) -> None:
    example = REQUESTS.get((method, path))
    if example is None:
        return
    for media in operation.get("requestBody", {}).get("content", {}).values():
        if "examples" not in media:
            media["example"] = example
