"""The form in which an answer is wanted: tool calls, JSON, JSON by a schema.

Responsible for: what of it the engine is told, what of a whole answer may be given out, and the messages that ask
again. Leaves to the runner when to ask and to hold back, and to `structured` the reading. Requests must have passed
`limits.check_request`.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from inference.protocol import ChatMessage, Delta, InferenceError, WrittenCall
from inference.schema import PROBLEMS_TOLD
from inference.structured import (
    StructuredOutputFailed,
    ToolCall,
    ask_again,
    call_again,
    check_answer,
    check_tool_call,
    strict_schema,
    strict_tool,
    tool_calls_in,
)

Tool = Mapping[str, Any]
CALLS_AT_MOST = 128


class AskAgain(InferenceError):
    """The answer cannot be used. `messages` follow the prompt the second time: what was said, and what is wrong."""

    def __init__(self, said: str, problem: str) -> None:
        super().__init__(problem)
        self.messages = (ChatMessage("assistant", said), ChatMessage("user", problem))


@dataclass(frozen=True, slots=True)
class Form:
    """`told`: the request's additions as the engine gets them. `tools`: those that may be called; `must_call` one of
    them, `one_call` at most. `json`: what is said instead must be JSON, by `schema` or, without one, any object."""

    told: Mapping[str, Any]
    tools: tuple[Tool, ...] = ()
    must_call: bool = False
    one_call: bool = False
    json: bool = False
    schema: Mapping[str, Any] | None = None

    def settle(self, answer: Delta, *, asked_again: bool) -> Delta:
        """The answer as it may be given out: calls whose arguments were read, JSON with nothing around it.

        AskAgain, or StructuredOutputFailed when that was done already or cannot help, since the answer was cut.
        """
        if calls := self._calls(answer):
            problems = [problem for call in calls for problem in call.problems][:PROBLEMS_TOLD]
            if len(calls) > CALLS_AT_MOST:
                problems = [f"{len(calls)} calls are too many; at most {CALLS_AT_MOST} are allowed at once"]
            if problems:
                raise self._unusable(answer, problems, asked_again, in_call=True)
            return _with_calls(answer, calls)
        if self.must_call:
            raise self._unusable(answer, ["no tool was called, and one must be"], asked_again, in_call=True)
        if not self.json:
            return answer
        checked = check_answer(answer.text, self.schema)
        if checked.problems:
            raise self._unusable(answer, checked.problems, asked_again, in_call=False)
        return replace(answer, text=checked.text)

    def _calls(self, answer: Delta) -> tuple[ToolCall, ...]:
        if answer.tool_calls:
            calls = tuple(check_tool_call(call.name, call.arguments, self.tools) for call in answer.tool_calls)
        else:
            calls = tool_calls_in(answer.text, self.tools) if self.tools else ()
        return calls[:1] if self.one_call else calls

    def _unusable(
        self, answer: Delta, problems: Sequence[str], asked_again: bool, *, in_call: bool
    ) -> AskAgain | StructuredOutputFailed:
        if answer.finish_reason == "length":
            return StructuredOutputFailed(("it was cut at its limit of tokens", *problems), in_call=in_call)
        if asked_again:
            return StructuredOutputFailed(problems, in_call=in_call)
        return AskAgain(_said(answer), call_again(problems) if in_call else ask_again(problems, self.schema))


def form_of(extra: Mapping[str, Any]) -> Form | None:
    """The form that a request's additions ask for; None when any text will do."""
    choice, wanted = extra.get("tool_choice"), extra.get("response_format") or {}
    tools = () if choice == "none" else tuple(map(strict_tool, extra.get("tools") or ()))
    kind = wanted.get("type", "text")
    if not tools and kind == "text":
        return None
    told = {**extra, "tools": list(tools)} if tools else dict(extra)
    schema = None
    if kind == "json_schema":
        schema = strict_schema(wanted["json_schema"]["schema"])
        told["response_format"] = {**wanted, "json_schema": {**wanted["json_schema"], "schema": schema, "strict": True}}
    named = choice["function"]["name"] if isinstance(choice, Mapping) else None
    return Form(
        told,
        tuple(tool for tool in tools if named in (None, tool["function"]["name"])),
        must_call=choice not in (None, "none", "auto"),
        one_call=extra.get("parallel_tool_calls") is False,
        json=kind != "text",
        schema=schema,
    )


def _with_calls(answer: Delta, calls: Sequence[ToolCall]) -> Delta:
    """What an engine gave as calls keeps its ids and the text beside them; calls read from the text are the text."""
    ids = [call.id for call in answer.tool_calls] or [""] * len(calls)
    written = tuple(
        WrittenCall(id or f"call_{secrets.token_hex(12)}", call.name, orjson.dumps(call.arguments).decode())
        for id, call in zip(ids, calls, strict=False)
    )
    text = answer.text if answer.tool_calls else ""
    return replace(answer, text=text, finish_reason="tool_calls", tool_calls=written)


def _said(answer: Delta) -> str:
    return "\n".join(filter(None, (answer.text, *(f"{call.name} {call.arguments}" for call in answer.tool_calls))))
