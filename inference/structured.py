"""Structured output and tool calls: what is asked of the engine, and what is made of the answer.

Responsible for: schemas in the strict form, reading JSON out of an answer whose model wrapped it (fences, prose, tags),
checking it, the messages that ask again, and the failure after that. Pure functions: `form` puts them in order.
Engines constrain the output where they can; this is for those that cannot, and for what arrives all the same.
Schemas must have passed `limits.check_request`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from inference.protocol import InferenceError
from inference.schema import problems_of

CHARACTERS_AT_MOST = 1_000_000
PLACES_TRIED = 20
"""Fences, and opening brackets in prose, from which JSON is tried to be read."""

_FENCE = re.compile(r"```\w*[^\S\n]*\n(.*?)```", re.DOTALL)
_OPENING = re.compile(r"[{\[]")
_TAG, _END_TAG = "<tool_call>", "</tool_call>"


class StructuredOutputFailed(InferenceError):
    """The answer was still wrong after it had been asked for once more. `problems` are for people and for logs;
    `in_call`: they are those of a tool call."""

    def __init__(self, problems: Sequence[str], *, in_call: bool = False) -> None:
        super().__init__(f"the model did not keep to the schema: {'; '.join(problems)}")
        self.problems = tuple(problems)
        self.in_call = in_call


# ---------------------------------------------------------------- what is asked of the engine


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with every object closed that names properties and does not say whether more may come. What is
    optional stays optional. Without keywords that only identify a schema, which engines stumble over."""
    closed: dict[str, Any] = _closed(dict(schema))
    return closed


def strict_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """The tool with `strict`, without which engines let its arguments wander off the schema."""
    function = dict(tool["function"])
    parameters = function.get("parameters") or {"type": "object", "properties": {}}
    return {**tool, "function": {**function, "parameters": strict_schema(parameters), "strict": True}}


def _closed(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    found = {name: _closed_keyword(name, value) for name, value in schema.items() if name not in ("$schema", "$id")}
    if "properties" in found and not found.keys() & {"additionalProperties", "patternProperties", "allOf"}:
        found["additionalProperties"] = False
    return found


def _closed_keyword(name: str, value: Any) -> Any:
    if name in ("properties", "$defs", "definitions", "patternProperties"):
        return {key: _closed(part) for key, part in value.items()}
    if name in ("anyOf", "oneOf", "prefixItems"):
        return [_closed(part) for part in value]
    return _closed(value) if name in ("items", "additionalProperties") else value


# ---------------------------------------------------------------- what is made of the answer


@dataclass(frozen=True, slots=True)
class Checked:
    """An answer that was read. `text` is its JSON alone; `repaired` tells that something stood around it. With
    `problems` the value is not to be used (None when there was no JSON at all)."""

    value: Any
    text: str
    repaired: bool = False
    problems: tuple[str, ...] = ()


def check_answer(answer: str, schema: Mapping[str, Any] | None) -> Checked:
    """The answer read as JSON and held against the schema (None: any object, as `json_object` asks for). Of several
    values in it the first that keeps to the schema counts, else the first."""
    wanted = {"type": "object"} if schema is None else schema
    first: Checked | None = None
    for value, text in _values_in(answer):
        checked = Checked(value, text, text != answer.strip(), problems_of(value, wanted))
        if not checked.problems:
            return checked
        first = first or checked
    return first or Checked(None, answer, problems=("the answer is not JSON",))


def ask_again(problems: Sequence[str], schema: Mapping[str, Any] | None) -> str:
    """The user message that follows the wrong answer, once."""
    wanted = "a JSON object" if schema is None else f"JSON that keeps to this schema: {orjson.dumps(schema).decode()}"
    return f"That answer cannot be used:\n{_listed(problems)}\nAnswer again with nothing but {wanted}"


def call_again(problems: Sequence[str]) -> str:
    """The user message that follows a wrong call, once. The schemas stand in the prompt already."""
    return f"That call cannot be used:\n{_listed(problems)}\nCall again, with arguments that keep to the tool's schema"


def _listed(problems: Sequence[str]) -> str:
    return "\n".join(f"- {problem}" for problem in problems)


# ---------------------------------------------------------------- tool calls


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call whose arguments were read. With `problems` it must not be dispatched."""

    name: str
    arguments: Mapping[str, Any]
    problems: tuple[str, ...] = ()


def check_tool_call(name: str, arguments: str, tools: Sequence[Mapping[str, Any]]) -> ToolCall:
    """A call as the engine gave it: the tool must be known, and its arguments an object that keeps to its schema."""
    schemas = {tool["function"]["name"]: tool["function"].get("parameters") or {} for tool in tools}
    if name not in schemas:
        known = ", ".join(sorted(schemas)) or "none"
        return ToolCall(name, {}, (f"there is no tool {name[:64]!r}; known are: {known}",))
    # Some models send nothing where a tool takes nothing.
    value = next((value for value, _ in _values_in(arguments or "{}") if isinstance(value, dict)), None)
    if value is None:
        return ToolCall(name, {}, (f"the arguments of {name} are not a JSON object",))
    return ToolCall(name, value, problems_of(value, schemas[name]))


def tool_calls_in(answer: str, tools: Sequence[Mapping[str, Any]]) -> tuple[ToolCall, ...]:
    """Calls that a model wrote as text because the engine's parser does not know its form: JSON with a `name` and
    `arguments` (or `parameters`), alone, in one fence, or in `<tool_call>` tags. Empty when the answer is an answer:
    JSON inside prose, or with the name of no tool, is not taken for a call."""
    names = {tool["function"]["name"] for tool in tools}
    values = [_load(part) for part in _call_texts(answer.strip()[:CHARACTERS_AT_MOST])]
    asked = [item for value in values for item in (value if isinstance(value, list) else [value])]
    if not all(
        isinstance(item, dict) and isinstance(item.get("name"), str) and item["name"] in names for item in asked
    ):
        return ()
    return tuple(_call_of(item, tools) for item in asked)


def _call_texts(whole: str) -> list[str]:
    """Models leave the last closing tag out at times."""
    tagged = whole.split(_TAG)[1 : PLACES_TRIED + 1]
    if tagged:
        return [part.partition(_END_TAG)[0] for part in tagged]
    fence = _FENCE.fullmatch(whole)
    return [fence[1] if fence else whole]


def _call_of(item: Mapping[str, Any], tools: Sequence[Mapping[str, Any]]) -> ToolCall:
    arguments = item.get("arguments", item.get("parameters", {}))
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    return check_tool_call(item["name"], text, tools)


# ---------------------------------------------------------------- reading JSON


def _load(text: str) -> Any:
    """The value of a whole text, None when it is no JSON (the value `null` is of no use to any caller)."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _values_in(answer: str) -> Iterator[tuple[Any, str]]:
    """JSON values with their texts: all of the answer, or what is inside fences, or begins at brackets in prose."""
    whole = answer.strip()
    if len(whole) > CHARACTERS_AT_MOST:
        return
    value = _load(whole)
    if value is not None:
        yield value, whole
        return
    for text in (*_fenced(whole), *_embedded(whole)):
        value = _load(text)
        if value is not None:
            yield value, text


def _fenced(whole: str) -> Iterator[str]:
    yield from (match[1].strip() for match in islice(_FENCE.finditer(whole), PLACES_TRIED))


def _embedded(whole: str) -> Iterator[str]:
    decoder, place = json.JSONDecoder(), 0
    for _ in range(PLACES_TRIED):
        opening = _OPENING.search(whole, place)
        if opening is None:
            return
        try:
            _, place = decoder.raw_decode(whole, opening.start())
            yield whole[opening.start() : place]
        except (json.JSONDecodeError, RecursionError):
            place = opening.end()
