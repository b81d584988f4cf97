"""The `/v1` addresses in the OpenAPI schema. They are served outside Django, so they are described here.

The request's shape is generated from the model that checks it; the answers' shapes are OpenAI's.
"""

from __future__ import annotations

from typing import Any, Final

from apps.api.types import ChatRequest

_REF = "#/components/schemas/{model}"
_TAG: Final = ["openai"]
_SECURITY: Final[list[dict[str, list[str]]]] = [{"apiKey": []}]
_USAGE: Final = {"prompt_tokens": 31, "completion_tokens": 8, "total_tokens": 39}
_ID: Final = "chatcmpl-0198f2b7c1c27d3f8a5e4b9d6c7e8f90"
_MODEL: Final = {"id": "auto", "object": "model", "created": 1735689600, "owned_by": "parley"}

_COMPLETION: Final = {
    "id": _ID,
    "object": "chat.completion",
    "created": 1767225600,
    "model": "smollm2-135m",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Good morning! How can I help?"},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": _USAGE,
}
_STREAM: Final = (
    f'data: {{"id":"{_ID}","object":"chat.completion.chunk","choices":[{{"index":0,"delta":{{"content":"Good"}},'
    '"finish_reason":null}]}\n\ndata: [DONE]\n\n'
)
_ERRORS: Final = {
    400: ("invalid_request_error", None, "Only n=1 is supported: one answer a request."),
    401: ("invalid_request_error", "invalid_api_key", "This API key is not valid."),
    404: ("invalid_request_error", "model_not_found", "There is no model named 'gpt-9'."),
    413: ("invalid_request_error", "request_too_large", "The request is larger than 1 MiB."),
    429: ("requests", "rate_limit_exceeded", "You have started 60 answers within a minute."),
    502: ("server_error", "invalid_output", "The answer does not have the form that was asked for."),
    503: ("server_error", "overloaded", "All places of the model are taken."),
}


def v1_components() -> dict[str, Any]:
    """Component schemas of the OpenAI-compatible API."""
    request = ChatRequest.model_json_schema(ref_template=_REF)
    parts: dict[str, Any] = request.pop("$defs", {})
    return parts | {"ChatRequest": request, "OpenAIError": _error_schema(), "Completion": _completion_schema()}


def v1_paths() -> dict[str, Any]:
    return {
        "/v1/chat/completions": {"post": _chat()},
        "/v1/models": {"get": _models("List models", {"object": "list", "data": [_MODEL]}, "list_v1_models")},
        "/v1/models/{model}": {
            "get": _models("Read a model", _MODEL, "get_v1_model")
            | {"parameters": [{"name": "model", "in": "path", "required": True, "schema": {"type": "string"}}]}
        },
    }


def _chat() -> dict[str, Any]:
    example = {"model": "auto", "messages": [{"role": "user", "content": "Good morning!"}], "stream": False}
    return {
        "operationId": "create_chat_completion",
        "summary": "Answer a chat",
        "description": (
            "OpenAI's chat completions over Parley's durable runs: point an official client's `base_url` at `/v1`. "
            "A client that closes the connection in mid-answer cancels it, unless it sent `x-parley-detach: true`; "
            "`x-parley-run-id` names the run either way. `Idempotency-Key` makes a retry return the first answer. "
            "With `tools` or a `response_format` the answer is checked before any of it is sent."
        ),
        "tags": _TAG,
        "security": _SECURITY,
        "parameters": [
            _header("Idempotency-Key", "The same key and body within 24 hours give the same answer."),
            _header("x-parley-detach", "`true` lets the answer go on without a reader."),
        ],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/ChatRequest"}, "example": example}
            },
        },
        "responses": {
            "200": {
                "description": "The answer, or its chunks as server-sent events when `stream` is true.",
                "content": {
                    "application/json": {
                        "schema": {"$ref": "#/components/schemas/Completion"},
                        "example": _COMPLETION,
                    },
                    "text/event-stream": {"schema": {"type": "string"}, "example": _STREAM},
                },
            },
            **{str(status): _error(status) for status in _ERRORS},
        },
    }


def _models(summary: str, example: dict[str, Any], operation_id: str) -> dict[str, Any]:
    return {
        "operationId": operation_id,
        "summary": summary,
        "tags": _TAG,
        "security": _SECURITY,
        "responses": {
            "200": {
                "description": "",
                "content": {"application/json": {"schema": {"type": "object"}, "example": example}},
            },
            **{str(status): _error(status) for status in (401, 404)},
        },
    }


def _header(name: str, description: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": description, "schema": {"type": "string"}}


def _error(status: int) -> dict[str, Any]:
    kind, code, message = _ERRORS[status]
    example = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    schema = {"$ref": "#/components/schemas/OpenAIError"}
    return {"description": message, "content": {"application/json": {"schema": schema, "example": example}}}


def _error_schema() -> dict[str, Any]:
    text_or_null = {"type": ["string", "null"]}
    return {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["message", "type", "param", "code"],
                "properties": {
                    "message": {"type": "string"},
                    "type": {"type": "string"},
                    "param": text_or_null,
                    "code": text_or_null,
                },
            }
        },
    }


def _completion_schema() -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["id", "object", "created", "model", "choices"],
        "properties": {
            "id": {"type": "string"},
            "object": {"type": "string", "const": "chat.completion"},
            "created": {"type": "integer"},
            "model": {"type": "string"},
            "choices": {"type": "array", "items": {"type": "object"}},
            "usage": {"type": "object"},
        },
    }
