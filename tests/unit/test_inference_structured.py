"""Answers that should be JSON: read, checked, asked for once more, and then refused; tool calls likewise."""

from __future__ import annotations

from typing import Any

import pytest

from inference.limits import check_request
from inference.structured import (
    CHARACTERS_AT_MOST,
    ask_again,
    call_again,
    check_answer,
    check_tool_call,
    strict_schema,
    strict_tool,
    tool_calls_in,
)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "maximum": 7}},
    "required": ["city"],
    "additionalProperties": False,
}
GOOD = '{"city": "Ulm", "days": 3}'
WEATHER: dict[str, Any] = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
NOW: dict[str, Any] = {"type": "function", "function": {"name": "now"}}
TOOLS = (WEATHER, NOW)


# ---------------------------------------------------------------- strict form


def test_objects_that_name_properties_are_closed_and_stay_optional() -> None:
    person = {"properties": {"name": {"type": "string"}}}
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.com/x",
        "type": "object",
        "properties": {
            "$id": {"type": "string"},
            "people": {"type": "array", "items": person},
            "either": {"anyOf": [person, {"type": "null"}]},
            "free": {"type": "object"},
            "open": {**person, "additionalProperties": True},
            "mixed": {**person, "allOf": [{"properties": {"age": {}}}]},
            "word": {"enum": [{"properties": {}}]},
        },
        "required": ["people"],
        "$defs": {"person": person},
    }
    before = repr(schema)
    strict = strict_schema(schema)
    closed = {**person, "additionalProperties": False}
    assert strict == {
        "type": "object",
        "properties": {
            "$id": {"type": "string"},
            "people": {"type": "array", "items": closed},
            "either": {"anyOf": [closed, {"type": "null"}]},
            "free": {"type": "object"},
            "open": {**person, "additionalProperties": True},
            "mixed": {**person, "allOf": [{"properties": {"age": {}}}]},
            "word": {"enum": [{"properties": {}}]},
        },
        "required": ["people"],
        "$defs": {"person": closed},
        "additionalProperties": False,
    }
    assert repr(schema) == before


def test_a_tool_is_strict_even_without_parameters() -> None:
    empty = {"type": "object", "properties": {}, "additionalProperties": False}
    assert strict_tool(NOW)["function"] == {"name": "now", "parameters": empty, "strict": True}
    assert strict_tool(WEATHER)["function"]["parameters"] == SCHEMA
    assert "strict" not in WEATHER["function"]
    check_request({"tools": [strict_tool(tool) for tool in TOOLS]})


# ---------------------------------------------------------------- answers


def test_a_clean_answer_is_taken_as_it_is() -> None:
    checked = check_answer(f" {GOOD}\n", SCHEMA)
    assert (checked.value, checked.text, checked.repaired, checked.problems) == (
        {"city": "Ulm", "days": 3},
        GOOD,
        False,
        (),
    )


@pytest.mark.parametrize(
    "answer",
    [
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}```",
        f"Here you are:\n\n```JSON  \n{GOOD}\n```\nAnything else?",
        f"```python\nprint(1)\n```\n```json\n{GOOD}\n```",
        f"Sure! {GOOD} Is that fine?",
        f"As [1] says {{see below}}: {GOOD}",
        f'{{"town": "Ulm"}} was wrong, rather {GOOD}',
    ],
)
def test_json_is_found_in_what_models_put_around_it(answer: str) -> None:
    checked = check_answer(answer, SCHEMA)
    assert (checked.text, checked.repaired, checked.problems) == (GOOD, True, ())


def test_problems_name_the_place() -> None:
    checked = check_answer('{"days": 9, "size": 1}', SCHEMA)
    assert checked.problems == ("city is missing", "days must be at most 7", "size is not allowed")
    assert check_answer("no", SCHEMA).problems == ("the answer is not JSON",)
    assert check_answer('{"city": "Ul', SCHEMA).problems == ("the answer is not JSON",)


def test_json_mode_takes_any_object_and_nothing_else() -> None:
    assert not check_answer('{"a": [1]}', None).problems
    assert check_answer("[1]", None).problems == ("the answer must be of type object",)


@pytest.mark.parametrize("answer", ["[" * 100_000, '{"a":' * 50_000, "```\n" * 50_000, "```" + " " * 500_000])
def test_hostile_answers_are_just_wrong(answer: str) -> None:
    assert check_answer(answer, SCHEMA).problems


def test_only_so_many_places_are_tried() -> None:
    assert not check_answer("```\nx\n```\n" * 19 + f"```\n{GOOD}\n```", SCHEMA).problems
    assert check_answer("{ " * 20 + "```\nx\n```\n" * 20 + f"```\n{GOOD}\n```", SCHEMA).problems


def test_an_answer_that_is_too_long_is_not_read() -> None:
    assert check_answer(GOOD + " " * CHARACTERS_AT_MOST + "x", SCHEMA).problems


# ---------------------------------------------------------------- once more


def test_asking_again_says_what_is_wrong_and_what_is_wanted() -> None:
    problems = check_answer('{"days": 1}', SCHEMA).problems
    assert problems == ("city is missing",)
    message = ask_again(problems, SCHEMA)
    assert "- city is missing" in message
    assert '"maximum":7' in message
    assert "- city is missing" in call_again(problems)


def test_json_mode_asks_for_an_object() -> None:
    assert ask_again(("the answer is not JSON",), None).endswith("Answer again with nothing but a JSON object")


# ---------------------------------------------------------------- tool calls


def test_a_good_call_gives_its_arguments() -> None:
    call = check_tool_call("weather", GOOD, TOOLS)
    assert (call.name, call.arguments, call.problems) == ("weather", {"city": "Ulm", "days": 3}, ())
    assert check_tool_call("now", "", TOOLS).problems == ()
    assert check_tool_call("weather", f"```json\n{GOOD}\n```", TOOLS).problems == ()


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("wether", GOOD, "there is no tool 'wether'; known are: now, weather"),
        ("weather", "", "city is missing"),
        ("weather", '{"city": 5}', "city must be of type string"),
        ("weather", '["Ulm"]', "the arguments of weather are not a JSON object"),
        ("weather", '{"city": "Ul', "the arguments of weather are not a JSON object"),
    ],
)
def test_a_bad_call_says_why(name: str, arguments: str, problem: str) -> None:
    assert check_tool_call(name, arguments, TOOLS).problems == (problem,)


CALL = f'{{"name": "weather", "arguments": {GOOD}}}'


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        (CALL, ["weather"]),
        (f"```json\n{CALL}\n```", ["weather"]),
        (f'[{CALL}, {{"name": "now"}}]', ["weather", "now"]),
        (f"I look.\n<tool_call>\n{CALL}\n</tool_call>\n<tool_call>{CALL}", ["weather", "weather"]),
        ('{"name": "weather", "parameters": "{\\"city\\": \\"Ulm\\"}"}', ["weather"]),
    ],
)
def test_calls_written_as_text_are_found(answer: str, names: list[str]) -> None:
    calls = tool_calls_in(answer, TOOLS)
    assert [call.name for call in calls] == names
    assert not any(call.problems for call in calls)


@pytest.mark.parametrize(
    "answer",
    [
        "It is sunny.",
        GOOD,
        "[]",
        '{"name": "Ulm", "arguments": {}}',
        '{"name": ["weather"]}',
        f"To ask for the weather send {CALL}.",
        f"Like so:\n```json\n{CALL}\n```",
        f'[{CALL}, {{"name": "other"}}]',
        "<tool_call>" * 50_000,
    ],
)
def test_answers_are_not_taken_for_calls(answer: str) -> None:
    assert tool_calls_in(answer, TOOLS) == ()


def test_a_call_in_text_is_checked_like_any_other() -> None:
    (call,) = tool_calls_in('{"name": "weather", "arguments": {"city": 1}}', TOOLS)
    assert call.problems == ("city must be of type string",)
