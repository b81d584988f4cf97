"""One run's questions to models: what readers get of each answer, and when.

Responsible for: holding an answer back while it may turn out not to be one, the checks at its end, asking once more,
and counting what was not given out. Leaves to `decision` which model is stronger, and to `execution` what follows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from apps.conversations.runner.context import MIN_OUTPUT, estimate_messages
from apps.conversations.runner.flusher import Flusher
from apps.conversations.runner.writer import RunWriter
from inference.form import AskAgain, form_of
from inference.protocol import Delta, DeltaStream, Engine, GenerationRequest, InferenceError, Usage, WrittenCall
from inference.routing.checks import failed_checks, may_be_refusal
from inference.structured import StructuredOutputFailed
from inference.withheld import WithheldStream

NOTHING = Usage(0, 0)
NO_JSON = "its JSON was invalid after one repair"


class Escalated(InferenceError):
    """The answer failed its checks, and a stronger model is to answer: `decision` says which, and why."""

    def __init__(self, decision: dict[str, Any]) -> None:
        super().__init__(decision["reasons"][-1]["text"])
        self.decision = decision


class Asking:
    """`extra`: the request's additions. `above`: the decision for a stronger model, given why one is needed; None where
    there is none. `taken`: what was used for answers that were not given out. `tool_calls`: of the one that was."""

    def __init__(
        self,
        writer: RunWriter,
        flusher: Flusher,
        extra: Mapping[str, Any],
        above: Callable[[str], dict[str, Any] | None],
    ) -> None:
        self.writer, self.flusher, self.above = writer, flusher, above
        self.form = form_of(extra)
        self.told = extra if self.form is None else self.form.told
        self.taken = NOTHING
        self.tool_calls: tuple[WrittenCall, ...] = ()

    async def ask(self, engine: Engine, request: GenerationRequest, *, room: int) -> str:
        """Have the answer written, with one more try where it cannot be used; why it ended. `room`: tokens that the
        prompt leaves. Raises the engine's errors, FencedOut, StructuredOutputFailed and Escalated."""
        try:
            return await self._pass(engine, request, asked_again=False)
        except AskAgain as error:
            left = max(MIN_OUTPUT, room - estimate_messages(error.messages))
            again = replace(
                request,
                request_id=f"{request.request_id}-again",
                messages=(*request.messages, *error.messages),
                max_tokens=min(request.max_tokens, left),
            )
            return await self._pass(engine, again, asked_again=True)

    def note(self, usage: Usage) -> None:
        """Count what was asked beside the answer."""
        self.taken = _sum(self.taken, usage)

    def used(self, escalations: Iterable[Mapping[str, Any]]) -> Usage:
        """All that the run took: for what was given out, for what was not, and by the models before, whose share stands
        in the reasons of the escalations."""
        writer, usage = self.writer, self.writer.usage
        prompt = len(writer.prompt_token_ids) or (usage.prompt_tokens if usage else 0)
        given = Usage(
            prompt,
            usage.completion_tokens if usage and not writer.ids_known else writer.tokens,
            min(usage.cached_tokens, prompt) if usage else 0,
        )
        before = (Usage(**{name: reason["facts"][name] for name in Usage.__slots__}) for reason in escalations)
        return _sum(given, self.taken, *before)

    async def _pass(self, engine: Engine, request: GenerationRequest, *, asked_again: bool) -> str:
        stream = engine.generate(request)
        held = self._hold(stream, asked_again=asked_again)
        try:
            return await self.flusher.follow(self.writer, held or stream)
        except (AskAgain, Escalated, StructuredOutputFailed, asyncio.CancelledError):
            if held is not None:
                kept = held.kept
                usage = kept.usage or Usage(len(kept.prompt_token_ids or ()), kept.tokens)
                self.note(usage)
            raise
        finally:
            await stream.aclose()

    def _hold(self, stream: DeltaStream, *, asked_again: bool) -> WithheldStream | None:
        """The stream, if its answer must not be seen yet: before it was checked, where it must have a form; while it
        may become a refusal, where a stronger model could answer instead."""
        if self.form is not None:
            return WithheldStream(stream, settle=partial(self._settle, asked_again=asked_again))
        if not self.writer.text_length and self.above(""):
            return WithheldStream(stream, settle=self._settle, holds=may_be_refusal)
        return None

    def _settle(self, answer: Delta, *, asked_again: bool = False) -> Delta:
        """What readers get of a whole answer. AskAgain and StructuredOutputFailed where it lacks its form; Escalated
        where it failed its checks and there is a stronger model."""
        try:
            if self.form is not None:
                answer = self.form.settle(answer, asked_again=asked_again)
        except StructuredOutputFailed as error:
            self._escalate(failed_checks("", tool_calls_valid=False) if error.in_call else NO_JSON)
            raise
        self._escalate(failed_checks(answer.text, tool_calls_valid=True if answer.tool_calls else None))
        self.tool_calls = answer.tool_calls
        return answer

    def _escalate(self, why: str | None) -> None:
        if why and (decision := self.above(why)):
            raise Escalated(decision)


def _sum(*usages: Usage) -> Usage:
    return Usage(
        sum(usage.prompt_tokens for usage in usages),
        sum(usage.completion_tokens for usage in usages),
        sum(usage.cached_tokens for usage in usages),
    )
