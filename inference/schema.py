"""JSON Schemas that people send: whether one is well formed and small enough, and whether a value keeps to it.

Responsible for the part of JSON Schema (draft 2020-12) that structured output uses. Both walks are bounded: a schema
by size, depth and counts, since engines compile it into a grammar; a check by steps, since nested alternatives can
take exponential time. `pattern`, `format`, `not`, `if` and other keywords are left to the engine: a pattern of a
stranger must not run in our processes. Leaves to `limits` and `structured` what follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any
from urllib.parse import unquote

import orjson

Schema = Mapping[str, Any] | bool

PROBLEMS_TOLD = 5
STEPS_AT_MOST = 50_000
NESTED_AT_MOST = 100
PATTERN_CHARACTERS = 512

_KINDS: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_ONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_SEVERAL = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_ELSEWHERE = ("$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor", "$id")


class BadSchema(ValueError):
    """A schema that no engine should get. `path` is where in it, in the form of `properties.size.items`."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message


@dataclass(frozen=True, slots=True)
class SchemaBounds:
    """`size`: bytes as JSON. `depth`: schemas inside schemas. `counts`: the largest length or number of items that a
    schema may ask for: engines unroll it."""

    size: int = 65_536
    depth: int = 20
    schemas: int = 1_000
    enum: int = 1_000
    counts: int = 10_000


# ---------------------------------------------------------------- is it a schema?


def check_schema(schema: Any, bounds: SchemaBounds = SchemaBounds()) -> None:
    """BadSchema when it is not well formed, too large, or refers to something outside itself."""
    try:
        size = len(orjson.dumps(schema))
    except (TypeError, ValueError, RecursionError):
        raise BadSchema("", "is not JSON") from None
    if size > bounds.size:
        raise BadSchema("", f"has {size:,} bytes; at most {bounds.size:,} are allowed")
    if not isinstance(schema, dict):
        raise BadSchema("", "must be an object")
    _check_references(schema, _walk(schema, bounds))


def _walk(schema: Mapping[str, Any], bounds: SchemaBounds) -> dict[int, tuple[str, Mapping[str, Any]]]:
    """Every schema inside a schema by its identity, with the path to it. BadSchema for the first that is wrong."""
    walked: dict[int, tuple[str, Mapping[str, Any]]] = {}
    waiting: list[tuple[str, int, Any]] = [("", 1, schema)]
    while waiting:
        path, depth, part = waiting.pop()
        if isinstance(part, bool):
            continue
        if not isinstance(part, dict):
            raise BadSchema(path, "must be an object, true or false")
        walked[id(part)] = (path, part)
        if len(walked) > bounds.schemas:
            raise BadSchema("", f"has more than {bounds.schemas:,} schemas in it")
        if depth > bounds.depth:
            raise BadSchema(path, f"is nested more than {bounds.depth} deep")
        for name, value in part.items():
            if wrong := _wrong_with(name, value, bounds):
                raise BadSchema(_join(path, name), wrong)
        waiting += [(_join(path, name), depth + 1, child) for name, child in _children(path, part)]
    return walked


def _check_references(root: Mapping[str, Any], walked: Mapping[int, tuple[str, Mapping[str, Any]]]) -> None:
    """References lead to schemas that were walked, and never back to the same place of the value without having gone
    into it: such a circle has no end."""
    same_place: dict[int, list[int]] = {}
    for key, (path, part) in walked.items():
        found = [child for name in ("anyOf", "oneOf", "allOf") for child in part.get(name, ())]
        if "$ref" in part:
            target = _target(part["$ref"], root, _join(path, "$ref"))
            if isinstance(target, dict) and id(target) not in walked:
                raise BadSchema(_join(path, "$ref"), "points to no schema")
            found.append(target)
        same_place[key] = [id(child) for child in found if isinstance(child, dict)]
    try:
        TopologicalSorter(same_place).prepare()
    except CycleError as error:
        path = walked[error.args[1][0]][0]
        raise BadSchema(path, "refers to itself without an end") from None


def _join(path: str, name: str) -> str:
    return f"{path}.{name[:60]}".lstrip(".")


def _children(path: str, part: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from ((name, part[name]) for name in _ONE if name in part)
    for name in _SEVERAL:
        if name in part:
            if not isinstance(part[name], list) or not part[name]:
                raise BadSchema(_join(path, name), "must be a list of schemas")
            yield from ((f"{name}[{number}]", child) for number, child in enumerate(part[name]))
    for name in _NAMED:
        if name in part:
            if not isinstance(part[name], dict):
                raise BadSchema(_join(path, name), "must be an object of schemas")
            yield from ((f"{name}.{key[:60]}", child) for key, child in part[name].items())


def _wrong_with(name: str, value: Any, bounds: SchemaBounds) -> str:
    """What is wrong with a keyword's value; empty when nothing is, or when the keyword is not looked at."""
    if name in _ELSEWHERE:
        return "is not supported"
    if name == "type":
        kinds = value if isinstance(value, list) and value else [value]
        return "" if all(isinstance(kind, str) and kind in _KINDS for kind in kinds) else "is no type of JSON"
    if name == "enum":
        fine = isinstance(value, list) and 0 < len(value) <= bounds.enum
        return "" if fine else f"must be a list of 1 to {bounds.enum:,} values"
    if name == "required":
        fine = isinstance(value, list) and all(isinstance(item, str) for item in value)
        return "" if fine else "must be a list of names"
    if name == "pattern":
        fine = isinstance(value, str) and len(value) <= PATTERN_CHARACTERS
        return "" if fine else f"must be a text of at most {PATTERN_CHARACTERS} characters"
    if name in _NUMBERS:
        return "" if _is_number(value) else "must be a number"
    if name in _COUNTS:
        fine = _is_one(value, "integer") and 0 <= value <= bounds.counts
        return "" if fine else f"must be a whole number from 0 to {bounds.counts:,}"
    return ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _target(reference: Any, root: Mapping[str, Any], path: str) -> Schema:
    """The schema that a `$ref` means. BadSchema for what is not inside the root."""
    if not isinstance(reference, str) or not re.match(r"#(/|$)", reference):
        raise BadSchema(path, "must point into the same schema, like `#/$defs/name`")
    found: Any = root
    for step in reference.split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isascii() and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        elif isinstance(found, dict) and name in found:
            found = found[name]
        else:
            raise BadSchema(path, f"points to nothing: {reference[:80]}")
    if not isinstance(found, dict | bool):
        raise BadSchema(path, "points to no schema")
    return found


# ---------------------------------------------------------------- does a value keep to it?


def problems_of(value: Any, schema: Mapping[str, Any]) -> tuple[str, ...]:
    """What is wrong with a JSON value, in words that name the place; empty when it keeps to the schema, which must
    have passed `check_schema`. A value that cannot be checked within the bounds counts as wrong."""
    check = _Check(schema)
    try:
        found = list(check.problems(value, schema, "", 0))
    except _TooMuch:
        return ("the answer is nested too deeply, or takes too long to check",)
    return tuple(found[:PROBLEMS_TOLD])


class _TooMuch(Exception):
    pass


@dataclass(slots=True)
class _Check:
    root: Mapping[str, Any]
    steps: int = field(default=0)

    def problems(self, value: Any, schema: Schema, path: str, depth: int) -> Iterator[str]:
        where = path or "the answer"
        self.steps += 1
        if not isinstance(schema, bool):
            self.steps += len(schema.get("enum", ())) + len(schema.get("required", ()))
        if self.steps > STEPS_AT_MOST or depth > NESTED_AT_MOST:
            raise _TooMuch
        if isinstance(schema, bool):
            if not schema:
                yield f"{where} is not allowed"
            return
        if "$ref" in schema:
            yield from self.problems(value, _target(schema["$ref"], self.root, path), path, depth + 1)
        if "type" in schema and not _is_kind(value, schema["type"]):
            yield f"{where} must be of type {_or(schema['type'])}"
            return
        yield from (f"{where} {words}" for words in _simple(value, schema))
        if isinstance(value, dict):
            yield from self._object(value, schema, path, depth)
        if isinstance(value, list):
            yield from self._array(value, schema, path, depth)
        yield from self._alternatives(value, schema, path, depth)

    def _object(self, value: Mapping[str, Any], schema: Mapping[str, Any], path: str, depth: int) -> Iterator[str]:
        known = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{_join(path, name)} is missing"
        for name, item in value.items():
            if name in known:
                yield from self.problems(item, known[name], _join(path, name), depth + 1)
            elif "patternProperties" not in schema:
                yield from self.problems(item, schema.get("additionalProperties", True), _join(path, name), depth + 1)

    def _array(self, value: Sequence[Any], schema: Mapping[str, Any], path: str, depth: int) -> Iterator[str]:
        first = schema.get("prefixItems", ())
        for number, item in enumerate(value):
            part = first[number] if number < len(first) else schema.get("items", True)
            yield from self.problems(item, part, f"{path}[{number}]", depth + 1)

    def _alternatives(self, value: Any, schema: Mapping[str, Any], path: str, depth: int) -> Iterator[str]:
        for part in schema.get("allOf", ()):
            yield from self.problems(value, part, path, depth + 1)
        for name in ("anyOf", "oneOf"):
            if name in schema:
                fitting = sum(self._fits(value, part, path, depth + 1) for part in schema[name])
                if fitting == 0 or (name == "oneOf" and fitting > 1):
                    count = "none" if fitting == 0 else "more than one"
                    yield f"{path or 'the answer'} fits {count} of the {len(schema[name])} alternatives"

    def _fits(self, value: Any, schema: Schema, path: str, depth: int) -> bool:
        return next(self.problems(value, schema, path, depth), None) is None


def _is_kind(value: Any, kinds: str | list[str]) -> bool:
    return any(_is_one(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _is_one(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, _KINDS[kind])


def _or(kinds: str | list[str]) -> str:
    return kinds if isinstance(kinds, str) else " or ".join(kinds)


def _same(one: Any, other: Any) -> bool:
    """JSON's equality: true is not 1, but 1.0 is."""
    if _is_number(one) and _is_number(other):
        return bool(one == other)
    return orjson.dumps(one, option=orjson.OPT_SORT_KEYS) == orjson.dumps(other, option=orjson.OPT_SORT_KEYS)


def _simple(value: Any, schema: Mapping[str, Any]) -> Iterator[str]:
    """The keywords that look at the value alone."""
    if "const" in schema and not _same(value, schema["const"]):
        yield f"must be {_told(schema['const'])}"
    if "enum" in schema and not any(_same(value, item) for item in schema["enum"]):
        yield f"must be one of {_told(schema['enum'])}"
    if _is_number(value):
        yield from _range(value, schema)
    for kind, low, high, unit in (
        (str, "minLength", "maxLength", "characters"),
        (list, "minItems", "maxItems", "items"),
        (dict, "minProperties", "maxProperties", "properties"),
    ):
        if isinstance(value, kind):
            if len(value) < schema.get(low, 0):
                yield f"must have at least {schema[low]} {unit}"
            if high in schema and len(value) > schema[high]:
                yield f"must have at most {schema[high]} {unit}"


def _range(value: float, schema: Mapping[str, Any]) -> Iterator[str]:
    if "minimum" in schema and value < schema["minimum"]:
        yield f"must be at least {schema['minimum']}"
    if "maximum" in schema and value > schema["maximum"]:
        yield f"must be at most {schema['maximum']}"
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        yield f"must be more than {schema['exclusiveMinimum']}"
    if "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]:
        yield f"must be less than {schema['exclusiveMaximum']}"


def _told(value: Any) -> str:
    return orjson.dumps(value).decode()[:200]
