"""What a request may ask of a replica, checked before anything reaches an engine.

Responsible for: output length, number of answers, log probabilities, stop strings, schemas and tools, the length of
the prompt, and the fields that would let one request occupy a replica. Pure functions over the OpenAI fields of a
request; the first thing that is wrong is told by the name of its field. Leaves to the callers types that they have
checked already, and to `structured` what is made of a schema.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inference.protocol import InferenceError
from inference.schema import BadSchema, SchemaBounds, check_schema

REFUSED = (
    "best_of",
    "use_beam_search",
    "prompt_logprobs",
    "echo",
    "min_tokens",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "structured_outputs",
    "structural_tag",
    "logits_processors",
    "vllm_xargs",
    "kv_transfer_params",
    "priority",
    "cache_salt",
)
"""Fields of vLLM that multiply work, compile grammars past our checks, or belong to us."""

_FUNCTION_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class BeyondLimits(InferenceError):
    """A request that asks for too much, or for something malformed. `param` names the field, in OpenAI's form."""

    def __init__(self, param: str, message: str) -> None:
        super().__init__(f"{param}: {message}")
        self.param = param
        self.message = message


@dataclass(frozen=True, slots=True)
class Limits:
    """Tokens, counts and characters that one request may have. `least_output`: room that a prompt must leave."""

    max_tokens: int = 16_384
    n: int = 1
    top_logprobs: int = 20
    stop_strings: int = 4
    stop_characters: int = 256
    tools: int = 128
    prompt_characters: int = 4_000_000
    least_output: int = 16
    schema: SchemaBounds = field(default_factory=SchemaBounds)


def check_request(request: Mapping[str, Any], limits: Limits = Limits()) -> None:
    """BeyondLimits for the first field that is refused. Fields that are absent or null are as good as not sent."""
    fields = {name: value for name, value in request.items() if value is not None}
    for name in REFUSED:
        if name in fields:
            raise BeyondLimits(name, "is not accepted here")
    for name in ("max_tokens", "max_completion_tokens"):
        _check_whole(fields, name, 1, limits.max_tokens)
    _check_whole(fields, "n", 1, limits.n)
    _check_logprobs(fields, limits)
    _check_stop(fields.get("stop", ()), limits)
    _check_format(fields.get("response_format"), limits)
    _check_choice(fields.get("tool_choice"), _check_tools(fields.get("tools", ()), limits))


def check_prompt(texts: Sequence[str], limits: Limits = Limits()) -> None:
    """BeyondLimits when the messages are too long even to be counted by a tokenizer."""
    characters = sum(len(text) for text in texts)
    if characters > limits.prompt_characters:
        allowed = f"at most {limits.prompt_characters:,} are allowed"
        raise BeyondLimits("messages", f"have {characters:,} characters; {allowed}")


def output_room(asked: int | None, *, prompt_tokens: int, context_length: int, limits: Limits = Limits()) -> int:
    """Tokens that the answer may have: what was asked for (all that is allowed, when nothing was), cut to what the
    prompt leaves of the context. BeyondLimits when it leaves less than `limits.least_output`."""
    room = context_length - prompt_tokens
    if room < limits.least_output:
        raise BeyondLimits(
            "messages",
            f"have {prompt_tokens:,} tokens, which leaves no room for an answer in a context of {context_length:,}",
        )
    return min(room, limits.max_tokens if asked is None else asked, limits.max_tokens)


# ---------------------------------------------------------------- field by field


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_whole(fields: Mapping[str, Any], name: str, least: int, most: int) -> None:
    value = fields.get(name, least)
    if not _is_whole(value) or not least <= value <= most:
        allowed = f"{least}" if least == most else f"a whole number from {least:,} to {most:,}"
        raise BeyondLimits(name, f"must be {allowed}")


def _check_logprobs(fields: Mapping[str, Any], limits: Limits) -> None:
    """Chat has `logprobs` as a switch and `top_logprobs` as a number; completions have `logprobs` as the number."""
    if not isinstance(fields.get("logprobs", False), bool):
        _check_whole(fields, "logprobs", 0, limits.top_logprobs)
    _check_whole(fields, "top_logprobs", 0, limits.top_logprobs)


def _check_stop(stop: Any, limits: Limits) -> None:
    texts = [stop] if isinstance(stop, str) else stop
    if not isinstance(texts, list | tuple) or len(texts) > limits.stop_strings:
        raise BeyondLimits("stop", f"must be a text, or at most {limits.stop_strings} of them")
    for number, text in enumerate(texts):
        if not isinstance(text, str) or len(text) > limits.stop_characters:
            where = "stop" if isinstance(stop, str) else f"stop[{number}]"
            raise BeyondLimits(where, f"must be a text of at most {limits.stop_characters} characters")


def _check_format(wanted: Any, limits: Limits) -> None:
    if wanted is None:
        return
    kind = wanted.get("type") if isinstance(wanted, Mapping) else None
    if kind not in ("text", "json_object", "json_schema"):
        raise BeyondLimits("response_format.type", "must be text, json_object or json_schema")
    if kind == "json_schema":
        form = wanted.get("json_schema")
        if not isinstance(form, Mapping) or "schema" not in form:
            raise BeyondLimits("response_format.json_schema", "must have a schema")
        _check_schema("response_format.json_schema.schema", form["schema"], limits)


def _check_tools(tools: Any, limits: Limits) -> set[str]:
    """The names of the tools."""
    if not isinstance(tools, list | tuple) or len(tools) > limits.tools:
        raise BeyondLimits("tools", f"must be a list of at most {limits.tools}")
    names: set[str] = set()
    for number, tool in enumerate(tools):
        where = f"tools[{number}]"
        function = tool.get("function") if isinstance(tool, Mapping) and tool.get("type") == "function" else None
        if not isinstance(function, Mapping):
            raise BeyondLimits(where, "must be a function")
        name = function.get("name")
        if not isinstance(name, str) or not _FUNCTION_NAME.fullmatch(name):
            raise BeyondLimits(f"{where}.function.name", "must be 1 to 64 letters, digits, `_` and `-`")
        if name in names:
            raise BeyondLimits(f"{where}.function.name", f"is used twice: {name}")
        names.add(name)
        if function.get("parameters") is not None:
            _check_schema(f"{where}.function.parameters", function["parameters"], limits)
            if function["parameters"].get("type", "object") != "object":
                raise BeyondLimits(f"{where}.function.parameters.type", "must be object")
    return names


def _check_choice(choice: Any, tools: set[str]) -> None:
    if choice in (None, "none", "auto"):
        return
    if not tools:
        raise BeyondLimits("tool_choice", "needs tools to choose from")
    if choice == "required":
        return
    function = choice.get("function") if isinstance(choice, Mapping) and choice.get("type") == "function" else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str):
        raise BeyondLimits("tool_choice", "must be none, auto, required or a function")
    if name not in tools:
        raise BeyondLimits("tool_choice.function.name", f"is the name of no tool: {name[:64]}")


def _check_schema(where: str, schema: Any, limits: Limits) -> None:
    try:
        check_schema(schema, limits.schema)
    except BadSchema as error:
        raise BeyondLimits(f"{where}.{error.path}".rstrip("."), error.message) from None
