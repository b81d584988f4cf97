"""The form an answer must have: what the engine is told, what may be given out, what is asked for again."""

from __future__ import annotations

from typing import Any

import pytest

from inference.form import AskAgain, Form, form_of
from inference.protocol import Delta, WrittenCall
from inference.structured import StructuredOutputFailed

CITY: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
GOOD, BAD = '{"city":"Ulm"}', '{"town":"Ulm"}'
WEATHER: dict[str, Any] = {"type": "function", "function": {"name": "weather", "parameters": CITY}}
NOW: dict[str, Any] = {"type": "function", "function": {"name": "now"}}
TOOLS = {"tools": [WEATHER, NOW]}
JSON = {"response_format": {"type": "json_schema", "json_schema": {"name": "c", "schema": CITY}}}
NAMED = {"tool_choice": {"type": "function", "function": {"name": "weather"}}}


def form(extra: dict[str, Any]) -> Form:
    made = form_of(extra)
    assert made is not None
    return made


def said(text: str, reason: str = "stop") -> Delta:
    return Delta(text, finish_reason=reason)


def called(*calls: tuple[str, str], text: str = "", reason: str = "tool_calls") -> Delta:
    written = tuple(WrittenCall(f"id-{n}", name, arguments) for n, (name, arguments) in enumerate(calls))
    return Delta(text, finish_reason=reason, tool_calls=written)


@pytest.mark.parametrize(
    "extra", [{}, {"response_format": {"type": "text"}}, TOOLS | {"tool_choice": "none"}, {"tools": []}], ids=repr
)
def test_any_text_will_do(extra: dict[str, Any]) -> None:
    assert form_of(extra) is None


def test_the_engine_is_told_the_strict_form() -> None:
    told = form(TOOLS | JSON | {"logit_bias": {"5": 1}}).told
    assert [tool["function"]["strict"] for tool in told["tools"]] == [True, True]
    shape = told["response_format"]["json_schema"]
    assert (shape["name"], shape["strict"], shape["schema"]) == ("c", True, CITY | {"additionalProperties": False})
    assert told["logit_bias"] == {"5": 1}
    assert "strict" not in WEATHER["function"]


def test_good_calls_keep_their_ids_and_the_text_beside_them() -> None:
    answer = form(TOOLS).settle(
        called(("weather", '{ "city": "Ulm" }'), ("now", ""), text="I look."), asked_again=False
    )
    assert answer.tool_calls == (WrittenCall("id-0", "weather", GOOD), WrittenCall("id-1", "now", "{}"))
    assert (answer.text, answer.finish_reason) == ("I look.", "tool_calls")


def test_calls_written_as_text_become_calls() -> None:
    text = f'```json\n{{"name": "weather", "arguments": {GOOD}}}\n```'
    answer = form(TOOLS).settle(said(text), asked_again=False)
    (call,) = answer.tool_calls
    assert (call.name, call.arguments, answer.text, answer.finish_reason) == ("weather", GOOD, "", "tool_calls")
    assert call.id.startswith("call_")


def test_only_one_call_is_kept_where_only_one_is_wanted() -> None:
    both = called(("weather", GOOD), ("now", ""))
    assert len(form(TOOLS | {"parallel_tool_calls": False}).settle(both, asked_again=False).tool_calls) == 1


def test_an_answer_beside_tools_is_an_answer() -> None:
    assert form(TOOLS).settle(said("It is sunny."), asked_again=False) == said("It is sunny.")


WRONG = [
    (TOOLS, called(("weather", BAD)), "city is missing", True),
    (TOOLS, called(("weather", "nonsense")), "not a JSON object", True),
    (TOOLS, called(("wether", GOOD)), "there is no tool", True),
    (TOOLS, called(("now", ""), ("weather", BAD)), "city is missing", True),
    (TOOLS, called(*[("now", "")] * 129), "129 calls are too many", True),
    (TOOLS | {"tool_choice": "required"}, said("It is sunny."), "no tool was called", True),
    (TOOLS | NAMED, called(("now", "")), "there is no tool 'now'; known are: weather", True),
    (JSON, said(BAD), "city is missing", False),
    (JSON, said("Ulm"), "not JSON", False),
    (JSON, said('{"city":"Ulm","more":1}'), "more is not allowed", False),
    ({"response_format": {"type": "json_object"}}, said("[1]"), "must be of type object", False),
    (TOOLS | JSON, said("It is sunny."), "not JSON", False),
]


@pytest.mark.parametrize(("extra", "answer", "problem", "in_call"), WRONG)
def test_what_is_wrong_is_asked_for_once_more_and_then_fails(
    extra: dict[str, Any], answer: Delta, problem: str, in_call: bool
) -> None:
    with pytest.raises(AskAgain) as again:
        form(extra).settle(answer, asked_again=False)
    theirs, ours = again.value.messages
    assert (theirs.role, ours.role) == ("assistant", "user")
    assert answer.text in theirs.content
    assert problem in ours.content
    with pytest.raises(StructuredOutputFailed, match=problem) as failed:
        form(extra).settle(answer, asked_again=True)
    assert failed.value.in_call is in_call


@pytest.mark.parametrize("answer", [said(GOOD[:-2], "length"), said("", "length")])
def test_an_answer_that_was_cut_is_not_asked_for_again(answer: Delta) -> None:
    with pytest.raises(StructuredOutputFailed, match="cut at its limit"):
        form(JSON).settle(answer, asked_again=False)


def test_json_stands_alone() -> None:
    answer = form(JSON).settle(said(f"Here:\n```json\n{GOOD}\n```\nBye"), asked_again=False)
    assert (answer.text, answer.finish_reason) == (GOOD, "stop")
