"""What every engine must do alike: in process, over HTTP, behind routers, and with a live vLLM."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator

import pytest
from anyio.from_thread import start_blocking_portal

from inference.engines.routers import ROUTERS
from inference.protocol import ChatMessage, EngineFailed, EngineRejected, ReplicaInfo, Resume, WrittenCall
from tests.contracts.engine_subjects import (
    NEEDS_VLLM_ROUTER,
    Subject,
    behind,
    in_process,
    live,
    over_http,
    routed,
    vllm_router,
)

# The first test that wants the live engine also waits for its start.
LIVE = pytest.param("live", marks=[pytest.mark.vllm, pytest.mark.timeout(1800)])


REAL_ROUTER = pytest.param("real vllm-router", marks=NEEDS_VLLM_ROUTER)


@pytest.fixture(scope="module")
def real_router() -> Iterator[ReplicaInfo]:
    """One for all tests, on a loop of its own: it takes seconds to start."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(routed()) as (router, _):
        yield router


@pytest.fixture(params=["in_process", "over_http", *ROUTERS, REAL_ROUTER, LIVE])
async def subject(request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
    if request.param == "live":
        context = live(request.getfixturevalue("live_supervisor"))
    elif request.param == "real vllm-router":
        context = vllm_router(request.getfixturevalue("real_router"))
    elif request.param in ROUTERS:
        context = behind(request.param)
    else:
        context = in_process() if request.param == "in_process" else over_http()
    async with context as subject:
        yield subject


async def test_an_answer_is_whole_and_accounted_for(subject: Subject) -> None:
    answer = await subject.ask(subject.request(subject.question(20, "ada"), max_tokens=120))
    assert answer.text
    assert answer.text == (subject.expected(20, "ada") or answer.text)
    assert [d for d in answer.deltas if d.finish_reason is not None] == [answer.last]
    assert answer.last.finish_reason in ("stop", "length")
    assert answer.last.usage is not None
    assert answer.last.usage.completion_tokens == answer.tokens
    if subject.exact:
        assert answer.tokens == len(answer.token_ids)
        assert answer.last.usage.prompt_tokens == len(answer.prompt_token_ids)


async def test_the_same_question_gives_the_same_answer(subject: Subject) -> None:
    first, second = [await subject.ask(subject.request(subject.question(15, "bo"), max_tokens=60)) for _ in range(2)]
    assert (first.text, first.token_ids) == (second.text, second.token_ids)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
async def test_continuing_by_token_ids_gives_exactly_the_rest(subject: Subject, share: float) -> None:
    needs_exact(subject)
    request = subject.request(subject.question(30, "cy"), max_tokens=80)
    whole = await subject.ask(request)
    said, text = split_at_delta(whole.token_ids, [(d.token_ids, d.text) for d in whole.deltas], share)
    rest = await subject.ask(
        subject.request(subject.question(30, "cy"), max_tokens=80, resume=Resume(whole.prompt_token_ids, said, text))
    )
    assert text + rest.text == whole.text
    assert said + rest.token_ids == whole.token_ids
    assert rest.last.finish_reason == whole.last.finish_reason


def needs_exact(subject: Subject) -> None:
    if not subject.exact:
        pytest.skip("no token ids come through this kind of router")


def split_at_delta(
    ids: tuple[int, ...], deltas: list[tuple[tuple[int, ...], str]], share: float
) -> tuple[tuple[int, ...], str]:
    """What a reader had after about `share` of the answer: whole deltas, as they are committed."""
    said: tuple[int, ...] = ()
    text = ""
    for more, piece in deltas:
        if len(said) + len(more) > share * len(ids):
            break
        said, text = said + more, text + piece
    return said, text


async def test_text_that_the_reader_lacks_comes_first(subject: Subject) -> None:
    """Engines hold back text that may become a stop string while its ids are out; then the replica dies."""
    needs_exact(subject)
    if subject.scripted:
        pytest.skip("scripted ids have no text without their script")
    request = subject.request(subject.question(30, "lu"), max_tokens=40)
    whole = await subject.ask(request)
    said, text = split_at_delta(whole.token_ids, [(d.token_ids, d.text) for d in whole.deltas], 0.5)
    lacking = Resume(whole.prompt_token_ids, said, text[:-4])
    rest = await subject.ask(subject.request(subject.question(30, "lu"), max_tokens=40, resume=lacking))
    assert text[:-4] + rest.text == whole.text


async def test_continuing_by_text_goes_on_in_the_sentence(subject: Subject) -> None:
    needs_exact(subject)
    request = subject.request(subject.question(30, "di"), max_tokens=60)
    whole = await subject.ask(request)
    text = whole.text[: len(whole.text) // 2].rstrip()
    rest = await subject.ask(subject.request(subject.question(30, "di"), max_tokens=60, resume=Resume((), (), text)))
    if subject.scripted:
        assert text + rest.text == whole.text
    assert rest.text
    assert not rest.text.startswith(text)


async def test_the_budget_counts_what_was_said_before(subject: Subject) -> None:
    needs_exact(subject)
    question, endless = subject.question(200, "ed"), {"ignore_eos": True}
    whole = await subject.ask(subject.request(question, max_tokens=24, extra=endless))
    assert (whole.last.finish_reason, whole.tokens) == ("length", 24)
    said, text = split_at_delta(whole.token_ids, [(d.token_ids, d.text) for d in whole.deltas], 0.5)
    rest = await subject.ask(
        subject.request(question, max_tokens=24, extra=endless, resume=Resume(whole.prompt_token_ids, said, text))
    )
    assert len(said) + rest.tokens == 24
    spent = await subject.ask(
        subject.request(question, max_tokens=24, resume=Resume(whole.prompt_token_ids, whole.token_ids, whole.text))
    )
    assert (spent.text, spent.tokens, spent.last.finish_reason) == ("", 0, "length")


async def test_a_stop_string_ends_the_answer_before_it(subject: Subject) -> None:
    question = subject.question(20, "flo")
    whole = await subject.ask(subject.request(question, max_tokens=60))
    stop = whole.text[len(whole.text) // 2 :][:3]
    cut = await subject.ask(subject.request(question, max_tokens=60, stop=(stop,)))
    assert cut.last.finish_reason == "stop"
    assert whole.text.startswith(cut.text)
    assert len(cut.text) < len(whole.text)
    assert stop not in cut.text


WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


async def test_tool_calls_come_whole_with_the_end(subject: Subject) -> None:
    if not subject.scripted:
        pytest.skip("the packaged model has no form for tool calls that its engine reads")
    text = 'itl:1\ncall:weather {"city": "Köln"}\ncall:weather {}'
    answer = await subject.ask(subject.request(text, extra={"tools": [WEATHER]}))
    assert (answer.text, answer.last.finish_reason) == ("", "tool_calls")
    assert [(call.id, call.name, call.arguments) for call in answer.last.tool_calls] == [
        ("call_0", "weather", '{"city": "Köln"}'),
        ("call_1", "weather", "{}"),
    ]
    assert not any(delta.tool_calls for delta in answer.deltas[:-1])
    assert answer.last.usage is not None
    assert answer.last.usage.completion_tokens == answer.tokens


async def test_a_tool_that_must_be_called_is_called(subject: Subject) -> None:
    choice = {"type": "function", "function": {"name": "weather"}}
    tool = {"type": "function", "function": {"name": "weather", "parameters": CITY, "strict": True}}
    text = 'call:weather {"city": "Ulm"}' if subject.scripted else "How is the weather in Ulm?"
    request = subject.request(text, max_tokens=200, extra={"tools": [tool], "tool_choice": choice})
    answer = await subject.ask(request)
    (call,) = answer.last.tool_calls
    assert call.id
    assert call.name == "weather"
    if answer.last.finish_reason != "length":
        assert isinstance(json.loads(call.arguments)["city"], str)


async def test_the_result_of_a_call_is_answered(subject: Subject) -> None:
    call = WrittenCall("call-9", "weather", '{"city": "Ulm"}')
    messages = (
        ChatMessage("user", "How is the weather in Ulm?"),
        ChatMessage("assistant", "", (call,)),
        ChatMessage("tool", "Sunny, 21 degrees.", tool_call_id="call-9"),
    )
    answer = await subject.ask(subject.request("", max_tokens=20, messages=messages))
    assert answer.text == ("Sunny, 21 degrees." if subject.scripted else answer.text)
    assert answer.last.finish_reason in ("stop", "length")


async def test_a_schema_is_kept_to(subject: Subject) -> None:
    text = 'say: {"city": "Ulm"}' if subject.scripted else "Name a city, as JSON."
    shape = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY, "strict": True}}
    answer = await subject.ask(subject.request(text, max_tokens=200, extra={"response_format": shape}))
    if answer.last.finish_reason == "stop":
        assert isinstance(json.loads(answer.text)["city"], str)


async def test_closing_the_stream_stops_the_replica(subject: Subject) -> None:
    stream = subject.engine.generate(subject.request(subject.question(2000, "gus"), max_tokens=2000))
    await anext(stream)
    assert (await subject.engine.load()).running == 1
    await stream.aclose()
    await subject.until_idle()


async def test_aborting_by_id_breaks_the_stream_off(subject: Subject) -> None:
    request = subject.request(subject.question(2000, "hal"), max_tokens=2000)
    stream = subject.engine.generate(request)
    first = await anext(stream)
    await subject.engine.abort(request.request_id)
    with pytest.raises(EngineFailed):
        _ = [delta async for delta in stream]
    assert first.text
    await stream.aclose()
    await subject.until_idle()


async def test_a_consumer_with_its_own_clock_gets_the_same_text(subject: Subject) -> None:
    request = subject.request(subject.question(30, "ivy"), max_tokens=60)
    whole = await subject.ask(request)
    stream = subject.engine.generate(subject.request(subject.question(30, "ivy"), max_tokens=60))
    taken = [await anext(stream)]
    while taken[-1].finish_reason is None:
        await asyncio.sleep(0.03)
        if (delta := stream.take()) is not None:
            taken.append(delta)
    assert "".join(d.text for d in taken) == whole.text
    assert stream.take() is None
    await stream.aclose()


async def test_streams_are_not_crossed(subject: Subject) -> None:
    words = [f"w{i}x" for i in range(6)]
    requests = [subject.request(subject.question(25, w), max_tokens=40) for w in words]
    answers = await asyncio.gather(*map(subject.ask, requests))
    if subject.scripted:
        assert [a.text for a in answers] == [subject.expected(25, w) for w in words]
    if subject.exact:
        assert len({a.prompt_token_ids for a in answers}) == len(words)


async def test_a_request_that_cannot_be_served_is_rejected(subject: Subject) -> None:
    request = subject.request("refuse:400" if subject.scripted else "x " * 20_000)
    with pytest.raises(EngineRejected) as caught:
        await subject.ask(request)
    assert caught.value.status == 400
    assert caught.value.message


@pytest.mark.parametrize(
    "messages",
    [
        (ChatMessage("user", "Hello"),),
        (ChatMessage("system", "You answer with one word."), ChatMessage("user", "Is water wet? 12345, é日本🙂")),
        (
            ChatMessage("user", "One\n\n two"),
            ChatMessage("assistant", "Three, **four**."),
            ChatMessage("user", "Five " * 300),
        ),
    ],
)
async def test_prompt_tokens_are_counted_as_the_replica_counts(
    subject: Subject, messages: tuple[ChatMessage, ...]
) -> None:
    counted = await subject.engine.count_tokens(messages)
    if not subject.counts:
        assert counted > 0
        pytest.skip("this kind of router does not count")
    answer = await subject.ask(subject.request("", max_tokens=2, messages=messages))
    assert answer.last.usage is not None
    assert counted == answer.last.usage.prompt_tokens


async def test_an_idle_engine_is_well_and_says_so(subject: Subject) -> None:
    health, load = await subject.engine.health(), await subject.engine.load()
    assert health.ok
    assert health.version or not subject.counts
    assert load.slots == 8
    assert load.running == load.waiting == 0


async def test_prefixes_are_cached_within_a_salt_and_never_across(subject: Subject) -> None:
    """No organization can tell by the clock, or by the usage, what another one asked."""
    needs_exact(subject)
    if subject.model == "fake" and not hasattr(subject.engine, "http"):
        pytest.skip("the engine in process has no cache")
    text = "Here is a long text that both ask about. " * 20 + subject.question(5, "ken")

    async def cached(salt: str) -> int:
        answer = await subject.ask(subject.request(text, max_tokens=4, cache_salt=salt, session="ken"))
        assert answer.last.usage is not None
        return answer.last.usage.cached_tokens

    assert await cached("a" * 64) == 0
    assert await cached("a" * 64) >= 96
    assert await cached("b" * 64) == 0
    assert await cached("b" * 64) >= 96
    assert await cached("a" * 64) >= 96
