"""The real engine under the real supervisor: what happens when it is killed in mid-answer."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest

from inference.engines.openai_http import OpenAIEngine
from inference.protocol import DeltaStream, EngineFailed, GenerationRequest, Resume
from inference.registry import read_models
from tests.contracts.engine_subjects import LIVE_MODEL, Answer, LiveSupervisor, Subject, live, live_question

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(3600)]


async def test_the_registry_tells_what_people_need_to_know(live_supervisor: LiveSupervisor) -> None:
    replica = live_supervisor.until_ready().replica
    (model,) = read_models(live_supervisor.redis)
    assert (model.id, model.state.value, model.demo, model.default) == (LIVE_MODEL, "ready", True, True)
    assert model.context_length == 8192
    assert "better" in model.note
    assert replica.version
    assert replica.kv_tokens
    assert replica.weights_digest
    assert replica.tokenizer_digest
    assert {"priority", "token_ids", "cache_salt", "abort", "tokenize"} <= replica.capabilities


async def test_a_killed_replica_breaks_the_answer_and_another_goes_on_where_it_stopped(
    live_supervisor: LiveSupervisor,
) -> None:
    async with live(live_supervisor) as subject:
        endless = {"ignore_eos": True}
        request = subject.request(live_question(60, "max"), max_tokens=120, extra=endless)
        undisturbed = await subject.ask(request)
        cut = await broken_off(subject, live_supervisor, replace(request, request_id="second"))
    assert undisturbed.text.startswith(cut.text)
    assert cut.tokens < undisturbed.tokens == 120
    lost = live_supervisor.until_lost().replica
    assert "SIGKILL" in lost.error
    replica = live_supervisor.until_ready(other_than=lost.url).replica
    assert replica.weights_digest == lost.weights_digest
    engine = OpenAIEngine(replica)
    again = Subject(engine, LIVE_MODEL, live_question, scripted=False)
    resume = Resume(cut.prompt_token_ids, cut.token_ids, cut.text)
    rest = await again.ask(again.request(request.messages[0].content, max_tokens=120, extra=endless, resume=resume))
    await engine.close()
    # The next token after exactly these ids: nothing is lost or doubled at the seam. What follows may differ from the
    # undisturbed answer, since reading a text in one go and word by word round differently where two tokens tie.
    assert rest.prompt_token_ids == cut.prompt_token_ids + cut.token_ids
    assert cut.tokens + rest.tokens == 120
    assert len(cut.token_ids + rest.token_ids) == 120
    assert read_models(live_supervisor.redis)[0].state.value == "ready"


async def broken_off(subject: Subject, supervisor: LiveSupervisor, request: GenerationRequest) -> Answer:
    """The part of an answer that came before its replica was killed."""
    stream = subject.engine.generate(request)
    answer = Answer()
    with pytest.raises(EngineFailed):
        await read_and_kill(stream, answer, supervisor)
    await stream.aclose()
    return answer


async def read_and_kill(stream: DeltaStream, answer: Answer, supervisor: LiveSupervisor) -> None:
    """Ends with the error that the kill causes."""
    killed = False
    while True:
        answer.deltas.append(await anext(stream))
        if answer.tokens >= 20 and not killed:
            killed = True
            os.kill(supervisor.server_pid(), signal.SIGKILL)
