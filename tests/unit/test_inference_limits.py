"""Requests that ask for too much are refused by the name of the field, before an engine sees them."""

from __future__ import annotations

from typing import Any

import pytest

from inference.limits import REFUSED, BeyondLimits, Limits, check_prompt, check_request, output_room
from inference.schema import STEPS_AT_MOST, BadSchema, SchemaBounds, check_schema, problems_of

CITY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 40},
        "people": {"type": "integer", "minimum": 0},
        "kind": {"enum": ["town", "city", 1, None]},
        "twins": {"type": "array", "items": {"$ref": "#"}, "maxItems": 2},
        "mayor": {"anyOf": [{"$ref": "#/$defs/person"}, {"type": "null"}]},
    },
    "required": ["name"],
    "additionalProperties": False,
    "$defs": {"person": {"type": "object", "properties": {"age": {"type": "number", "exclusiveMinimum": 0}}}},
}


def tool(name: str = "weather", **function: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **function}}


def with_schema(schema: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}


# ---------------------------------------------------------------- fields


def test_an_ordinary_request_passes() -> None:
    check_request(
        {
            "max_tokens": 16_384,
            "n": 1,
            "stop": ["END", "\n\n"],
            "logprobs": True,
            "top_logprobs": 5,
            "temperature": 0.2,
            "seed": None,
            "best_of": None,
            "tools": [tool(), tool("time", parameters=CITY)],
            **with_schema(CITY),
        }
    )
    check_request({"stop": "END", "logprobs": 3, "response_format": {"type": "json_object"}})
    check_request({"tools": [tool("time")], "tool_choice": {"type": "function", "function": {"name": "time"}}})
    check_request({"tool_choice": "auto"})
    check_request({})


@pytest.mark.parametrize(
    ("request_", "param"),
    [
        ({"max_tokens": 16_385}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_completion_tokens": 1.5}, "max_completion_tokens"),
        ({"n": 2}, "n"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"logprobs": -1}, "logprobs"),
        ({"stop": ["a"] * 5}, "stop"),
        ({"stop": "a" * 257}, "stop"),
        ({"stop": ["a", 7]}, "stop[1]"),
        ({"stop": 7}, "stop"),
        ({"response_format": "json"}, "response_format.type"),
        ({"response_format": {"type": "regex"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        (with_schema([]), "response_format.json_schema.schema"),
        (with_schema({"items": {"type": "text"}}), "response_format.json_schema.schema.items.type"),
        ({"tools": [tool()] * 129}, "tools"),
        ({"tools": "weather"}, "tools"),
        ({"tools": [tool(), tool()]}, "tools[1].function.name"),
        ({"tools": [tool("no spaces")]}, "tools[0].function.name"),
        ({"tools": [{"type": "web"}]}, "tools[0]"),
        ({"tools": [tool(parameters={"enum": []})]}, "tools[0].function.parameters.enum"),
        ({"tools": [tool(parameters={"type": "string"})]}, "tools[0].function.parameters.type"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [tool()], "tool_choice": "always"}, "tool_choice"),
        ({"tools": [tool()], "tool_choice": 7}, "tool_choice"),
        ({"tools": [tool()], "tool_choice": {"type": "function", "function": "weather"}}, "tool_choice"),
        (
            {"tools": [tool()], "tool_choice": {"type": "function", "function": {"name": "t"}}},
            "tool_choice.function.name",
        ),
    ],
)
def test_the_field_that_is_too_much_is_named(request_: dict[str, Any], param: str) -> None:
    with pytest.raises(BeyondLimits) as refusal:
        check_request(request_)
    assert refusal.value.param == param
    assert str(refusal.value).startswith(f"{param}: ")


@pytest.mark.parametrize("name", REFUSED)
def test_fields_that_occupy_a_replica_are_refused(name: str) -> None:
    with pytest.raises(BeyondLimits) as refusal:
        check_request({name: 1})
    assert refusal.value.param == name


def test_prompts_are_bounded_before_they_are_counted() -> None:
    check_prompt(["a" * 10, "b" * 10], Limits(prompt_characters=20))
    with pytest.raises(BeyondLimits, match="messages: have 21 characters; at most 20"):
        check_prompt(["a" * 10, "b" * 11], Limits(prompt_characters=20))


@pytest.mark.parametrize(
    ("asked", "prompt", "room"), [(100, 1_000, 100), (5_000, 4_000, 4_000), (None, 7_000, 1_000), (None, 10, 2_000)]
)
def test_an_answer_gets_what_was_asked_or_what_is_left(asked: int | None, prompt: int, room: int) -> None:
    limits = Limits(max_tokens=2_000 if asked is None else 16_384)
    assert output_room(asked, prompt_tokens=prompt, context_length=8_000, limits=limits) == room


def test_a_prompt_that_leaves_no_room_is_refused() -> None:
    assert output_room(500, prompt_tokens=7_984, context_length=8_000) == 16
    with pytest.raises(BeyondLimits, match="7,985 tokens, which leaves no room"):
        output_room(500, prompt_tokens=7_985, context_length=8_000)


# ---------------------------------------------------------------- schemas


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth - 1):
        schema = {"type": "array", "items": schema}
    return schema


def test_the_bounds_of_a_schema_are_inclusive() -> None:
    check_schema(nested(20))
    check_schema({"enum": list(range(1_000))})
    check_schema({"properties": {str(n): True for n in range(2_000)}})
    check_schema({"properties": {str(n): {} for n in range(999)}})


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (nested(21), "nested more than 20 deep"),
        ({"description": "a" * 65_536}, "bytes; at most 65,536"),
        ({"properties": {str(n): {} for n in range(1_000)}}, "more than 1,000 schemas"),
        ({"enum": list(range(1_001))}, "enum: must be a list of 1 to 1,000 values"),
        ({"maxLength": 10_001}, "maxLength: must be a whole number"),
        ({"minItems": float("inf")}, "minItems: must be a whole number"),
        ({"pattern": "a" * 513}, "pattern: must be a text of at most 512"),
        ({"type": ["string", 5]}, "type: is no type of JSON"),
        ({"anyOf": []}, "anyOf: must be a list of schemas"),
        ({"anyOf": [5]}, r"anyOf\[0\]: must be an object, true or false"),
        ({"properties": []}, "properties: must be an object of schemas"),
        ({"required": "name"}, "required: must be a list of names"),
        ({"minimum": "1"}, "minimum: must be a number"),
        ({"$dynamicRef": "#x"}, "is not supported"),
        ({"$ref": "http://127.0.0.1/schema.json"}, "must point into the same schema"),
        ({"$ref": "#/$defs/none"}, "points to nothing"),
        ({"$ref": "#/enum/0", "enum": [{"type": 5}]}, "points to no schema"),
        ({"$ref": "#/enum/0", "enum": ["text"]}, "points to no schema"),
        ({"$ref": "#"}, "refers to itself without an end"),
        ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}}, "without an end"),
        ({"x": object()}, "is not JSON"),
        ("text", "must be an object"),
    ],
)
def test_schemas_that_no_engine_should_get(schema: Any, words: str) -> None:
    with pytest.raises(BadSchema, match=words):
        check_schema(schema)


def test_bounds_can_be_tighter() -> None:
    with pytest.raises(BadSchema):
        check_schema(nested(3), SchemaBounds(depth=2))


def test_a_schema_that_refers_to_itself_further_inside_is_fine() -> None:
    check_schema(CITY)
    check_schema({"properties": {"a~/b": {"$ref": "#/properties/c%25"}, "c%": {"anyOf": [{}, {"$ref": "#"}]}}})


@pytest.mark.parametrize(
    "value",
    [
        {"name": "Ulm"},
        {"name": "Ulm", "people": 126_000.0, "kind": 1.0, "mayor": None},
        {"name": "Ulm", "kind": None, "twins": [{"name": "Jinotega", "mayor": {"age": 50}}]},
    ],
)
def test_values_that_keep_to_the_schema(value: Any) -> None:
    assert problems_of(value, CITY) == ()


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([], "the answer must be of type object"),
        ({}, "name is missing"),
        ({"name": ""}, "name must have at least 1 characters"),
        ({"name": "Ulm", "people": 1.5}, "people must be of type integer"),
        ({"name": "Ulm", "people": True}, "people must be of type integer"),
        ({"name": "Ulm", "people": -1}, "people must be at least 0"),
        ({"name": "Ulm", "kind": True}, 'kind must be one of ["town","city",1,null]'),
        ({"name": "Ulm", "size": 1}, "size is not allowed"),
        ({"name": "Ulm", "twins": [{"name": "a"}] * 3}, "twins must have at most 2 items"),
        ({"name": "Ulm", "twins": [{"name": 5}]}, "twins[0].name must be of type string"),
        ({"name": "Ulm", "mayor": {"age": 0}}, "mayor fits none of the 2 alternatives"),
    ],
)
def test_values_that_do_not(value: Any, problem: str) -> None:
    assert problems_of(value, CITY) == (problem,)


def test_the_other_keywords_of_the_subset() -> None:
    schema: dict[str, Any] = {
        "prefixItems": [{"const": 1}],
        "items": {"oneOf": [{"type": "integer", "maximum": 9}, {"exclusiveMaximum": 5}]},
        "maxItems": 3,
    }
    assert problems_of([1, 7], schema) == ()
    assert problems_of([2, 3, 12], schema) == (
        "[0] must be 1",
        "[1] fits more than one of the 2 alternatives",
        "[2] fits none of the 2 alternatives",
    )
    assert problems_of({"a": 1}, {"minProperties": 2}) == ("the answer must have at least 2 properties",)
    assert problems_of({"ab": 1}, {"patternProperties": {"(a+)+$": False}, "additionalProperties": False}) == ()


def test_at_most_five_problems_are_told() -> None:
    assert len(problems_of({str(n): n for n in range(9)}, {"additionalProperties": {"type": "string"}})) == 5


def test_a_check_that_would_take_exponential_time_stops() -> None:
    fork: dict[str, Any] = {"allOf": [{"properties": {"x": {"$ref": "#"}}}] * 2}
    value: dict[str, Any] = {}
    for _ in range(20):
        value = {"x": value}
    check_schema(fork)
    assert STEPS_AT_MOST < 2**20
    assert "takes too long" in problems_of(value, fork)[0]


def test_long_lists_of_allowed_values_count_as_steps() -> None:
    schema = {"items": {"enum": list(range(1_000))}}
    check_schema(schema)
    assert problems_of([5] * 40, schema) == ()
    assert "takes too long" in problems_of([5] * 60, schema)[0]


def test_a_value_that_is_nested_too_deeply_counts_as_wrong() -> None:
    value: Any = 1
    for _ in range(500):
        value = [value]
    assert "nested too deeply" in problems_of(value, {"items": {"$ref": "#"}})[0]
