"""From an OpenAI request to what a run needs, and the list of models in OpenAI's shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import ValidationError

from apps.accounts.types import ModelPolicy
from apps.api.types import ChatRequest, InputMessage
from apps.conversations.public import ChatMessage, RunParams, WrittenCall, usable_models
from apps.core.errors import Invalid, ModelNotFound
from inference.client import AUTO
from inference.limits import BeyondLimits, Limits, check_request

_FUNCTIONS = "`{param}` is the older form and is not available. Send `tools`."
# What an answer may have of a context is decided where the context is built.
_LIMITS = Limits(max_tokens=1 << 20)
_STARTED_WITH_PARLEY = 1_735_689_600
"""OpenAI's list wants a creation time for each model; replicas do not tell one, so it is a constant."""


def parse_chat(body: bytes) -> ChatRequest:
    """The request of a body. Raises Invalid with `param` naming the field."""
    try:
        request = ChatRequest.model_validate_json(body)
    except ValidationError as error:
        raise _invalid(error) from error
    _refuse_unsupported(request)
    try:
        check_request(orjson.loads(body), _LIMITS)
    except BeyondLimits as error:
        raise _refusal(error.param, f"{error.param} {error.message}.") from error
    return request


def chat_messages(request: ChatRequest) -> tuple[ChatMessage, ...]:
    """The prompt as plain text messages. Raises Invalid for pictures, sound, NUL characters, and results of calls that
    nobody made."""
    messages: list[ChatMessage] = []
    called: set[str] = set()
    for n, message in enumerate(request.messages):
        if message.role == "tool" and message.tool_call_id not in called:
            told = "A result names the call that it belongs to, by the id that an earlier message gave it."
            raise _refusal(f"messages[{n}].tool_call_id", told)
        messages.append(_message(message, f"messages[{n}]"))
        called |= {call.id for call in messages[-1].tool_calls}
    return tuple(messages)


def run_params(request: ChatRequest) -> RunParams:
    stop = (request.stop,) if isinstance(request.stop, str) else tuple(request.stop or ())
    extra: dict[str, Any] = {
        name: getattr(request, name)
        for name in ("presence_penalty", "frequency_penalty", "logit_bias")
        if getattr(request, name)
    }
    if request.response_format is not None and request.response_format.type != "text":
        extra["response_format"] = request.response_format.model_dump()
    if request.tools:
        for name in ("tools", "tool_choice", "parallel_tool_calls"):
            if getattr(request, name) is not None:
                extra[name] = getattr(request, name)
    for param, value in (("stop", stop), *extra.items()):
        if _has_nul(value):
            raise _refusal(param, "NUL characters are not allowed.")
    return RunParams(
        max_tokens=request.output_limit,
        temperature=request.temperature,
        top_p=request.top_p,
        stop=tuple(text for text in stop if text),
        seed=request.seed,
        extra=extra,
    )


def list_models(policy: ModelPolicy) -> dict[str, Any]:
    """`auto` first, then every model that the organization may use and that a replica serves or is loading."""
    names = [AUTO, *(model.id for model in usable_models(policy))]
    return {"object": "list", "data": [_model(name) for name in names]}


def get_model(policy: ModelPolicy, name: str) -> dict[str, Any]:
    if name != AUTO and name not in {model.id for model in usable_models(policy)}:
        raise ModelNotFound(f"The model {name[:80]!r} does not exist. GET /v1/models lists those that do.")
    return _model(name)


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": _STARTED_WITH_PARLEY, "owned_by": "parley"}


def _invalid(error: ValidationError) -> Invalid:
    # Of a union's complaints the one that got furthest into the value speaks of what the caller meant.
    first = max(error.errors(include_url=False, include_input=False), key=lambda detail: len(detail["loc"]))
    if first["type"] == "json_invalid":
        return _refusal(None, f"The body is not valid JSON: {first.get('ctx', {}).get('error', '')}.")
    path = [part for part in first["loc"] if isinstance(part, int) or part.isidentifier()]
    param = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    return _refusal(param or None, f"{param}: {first['msg']}." if param else f"{first['msg']}.")


def _refusal(param: str | None, message: str) -> Invalid:
    return Invalid(message, param=param)


def _refuse_unsupported(request: ChatRequest) -> None:
    if request.n is not None and request.n != 1:
        raise _refusal("n", "Only n=1 is supported: one answer a request. Send several requests for several answers.")
    for param in ("functions", "function_call"):
        if getattr(request, param) not in (None, [], "none", "auto"):
            raise _refusal(param, _FUNCTIONS.format(param=param))
    if request.logprobs or request.top_logprobs:
        raise _refusal("logprobs", "Log probabilities are not available. Leave `logprobs` and `top_logprobs` out.")
    if request.audio is not None or (request.modalities and set(request.modalities) != {"text"}):
        raise _refusal("modalities", "Only text answers are available.")
    if _has_nul(request.model):
        raise _refusal("model", "NUL characters are not allowed.")


def _message(message: InputMessage, where: str) -> ChatMessage:
    if message.role == "function" or message.function_call:
        raise _refusal(where, _FUNCTIONS.format(param=where))
    if message.tool_calls and message.role != "assistant":
        raise _refusal(f"{where}.tool_calls", "Only an assistant calls tools.")
    calls = tuple(
        WrittenCall(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ()
    )
    read = ChatMessage(
        "system" if message.role == "developer" else message.role,
        _content(message, f"{where}.content"),
        calls,
        message.tool_call_id or "",
    )
    if _has_nul(read.content):
        raise _refusal(f"{where}.content", "NUL characters are not allowed.")
    if _has_nul(read.view()):
        raise _refusal(where, "NUL characters are not allowed.")
    return read


def _content(message: InputMessage, where: str) -> str:
    if isinstance(message.content, str):
        return message.content
    if message.content is None:
        if message.role != "assistant":
            raise _refusal(where, "A message needs a content.")
        return ""
    texts: list[str] = []
    for n, part in enumerate(message.content):
        text = part.refusal if part.type == "refusal" else part.text
        if part.type not in ("text", "input_text", "refusal") or text is None:
            raise _refusal(
                f"{where}[{n}]", f"Only text is read here, and this part is {part.type[:40]!r}. Leave it out."
            )
        texts.append(text)
    return "\n".join(texts)


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, Mapping):
        return any(_has_nul(key) or _has_nul(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return any(_has_nul(item) for item in value)
    return False
