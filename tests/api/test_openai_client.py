"""The official `openai` client against a running server: what its users see."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import openai
import pydantic
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionChunk

from tests.services import Services
from tests.stack import Stack

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS: Any = [{"type": "function", "function": {"name": "weather", "parameters": CITY, "strict": True}}]
ANYWHERE: Any = [{"type": "function", "function": {"name": "weather"}}]
CALLED = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
WORDS = "Zwölf Boxkämpfer jagen Eva “quer” über den Sylter Deich 🙂 \\ end"


@pytest.fixture(scope="module")
def stack(services: Services) -> Iterator[Stack]:
    with Stack(services, replica_options=("--itl", "2")) as running:
        yield running


@pytest.fixture(scope="module")
def key(stack: Stack) -> str:
    return stack.api_key()


@pytest.fixture
def client(stack: Stack, key: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{stack.url()}/v1", api_key=key, max_retries=0, timeout=30) as made:
        yield made


def user(text: str) -> Any:
    return [{"role": "user", "content": text}]


def stream(client: OpenAI, text: str, **options: Any) -> list[ChatCompletionChunk]:
    return list(client.chat.completions.create(model="auto", messages=user(text), stream=True, **options))


def text_of(chunks: list[ChatCompletionChunk]) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def run_of(stack: Stack, key: str, run_id: str) -> dict[str, Any]:
    request = urllib.request.Request(f"{stack.url()}/api/runs/{run_id}", headers={"authorization": f"Bearer {key}"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        body: dict[str, Any] = json.load(answer)
    return body


def wait_for_state(stack: Stack, key: str, run_id: str, *, not_in: set[str], seconds: float = 10) -> dict[str, Any]:
    deadline = time.monotonic() + seconds
    while (run := run_of(stack, key, run_id))["state"] in not_in:
        assert time.monotonic() < deadline, run
        time.sleep(0.05)
    return run


def test_models_are_listed_and_read(client: OpenAI) -> None:
    names = [model.id for model in client.models.list()]
    assert names == ["auto", "fake"]
    assert client.models.retrieve("fake").object == "model"
    with pytest.raises(openai.NotFoundError) as missing:
        client.models.retrieve("gpt-9")
    assert missing.value.code == "model_not_found"


def test_an_answer_at_once(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model="fake",
        messages=[
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": f"say: {WORDS}"}]},
        ],
        temperature=0.5,
        top_p=0.9,
        seed=7,
        stop=["never occurs"],
        user="somebody",
        metadata={"purpose": "test"},
    )
    assert answer.choices[0].message.content == WORDS
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == "fake"
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0


def test_a_stream_says_the_same_in_pieces(client: OpenAI) -> None:
    chunks = stream(client, f"say: {WORDS}", stream_options={"include_usage": True})
    assert text_of(chunks) == WORDS
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert {(chunk.id, chunk.model, chunk.object) for chunk in chunks} == {
        (chunks[0].id, "fake", "chat.completion.chunk")
    }
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens > 1
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_without_include_usage_no_chunk_has_any(client: OpenAI) -> None:
    chunks = stream(client, "n:3")
    assert all(chunk.usage is None for chunk in chunks)
    assert all(chunk.choices for chunk in chunks)


def test_a_limit_of_tokens_ends_with_length(client: OpenAI) -> None:
    answer = client.chat.completions.create(model="auto", messages=user("n:50"), max_completion_tokens=5)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 5


def test_streams_do_not_cross(stack: Stack, key: str) -> None:
    async def one(client: AsyncOpenAI, word: str) -> str:
        parts = await client.chat.completions.create(model="auto", messages=user(f"n:30 seed:{word}"), stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in parts])

    async def all_of_them() -> list[str]:
        async with AsyncOpenAI(base_url=f"{stack.url()}/v1", api_key=key, max_retries=0, timeout=60) as client:
            return list(await asyncio.gather(*(one(client, f"w{n}x") for n in range(16))))

    texts = asyncio.run(all_of_them())
    for n, text in enumerate(texts):
        assert text.startswith(f"[w{n}x]"), text
        assert text.count("[w") == 1


def test_a_replica_that_dies_in_mid_answer_is_not_noticed(client: OpenAI) -> None:
    whole = client.chat.completions.create(model="auto", messages=user("n:40 seed:same")).choices[0].message.content
    assert text_of(stream(client, "n:40 seed:same die:12")) == whole


def test_an_engine_that_refuses_keeps_its_status_in_a_stream_too(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        stream(client, "refuse:400")
    assert refused.value.code == "rejected"


def a_round_trip(client: OpenAI, ask: Any) -> None:
    """Question, calls, results, answer; `ask` gets a whole message from the client in some way."""
    messages: list[Any] = user('itl:1\ncall:weather {"city": "Ulm"}\ncall:weather {"city": "Köln"}')
    message, reason = ask(messages)
    assert reason == "tool_calls"
    assert not message.content
    cities = [json.loads(call.function.arguments)["city"] for call in message.tool_calls]
    assert cities == ["Ulm", "Köln"]
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": f"{city} is sunny."}
        for call, city in zip(message.tool_calls, cities, strict=True)
    ]
    answer, reason = ask([*messages, message.model_dump(exclude_none=True), *results])
    assert (answer.content, answer.tool_calls, reason) == ("Köln is sunny.", None, "stop")


def test_a_tools_round_trip(client: OpenAI) -> None:
    def ask(messages: Any) -> Any:
        answer = client.chat.completions.create(model="fake", messages=messages, tools=TOOLS)
        return answer.choices[0].message, answer.choices[0].finish_reason

    a_round_trip(client, ask)


def test_a_tools_round_trip_by_streams(client: OpenAI) -> None:
    def ask(messages: Any) -> Any:
        with client.chat.completions.stream(model="fake", messages=messages, tools=TOOLS) as events:
            choice = events.get_final_completion().choices[0]
        return choice.message, choice.finish_reason

    a_round_trip(client, ask)


def test_a_call_written_as_text_is_a_call(client: OpenAI) -> None:
    chunks = stream(client, 'fence: {"name": "weather", "arguments": {"city": "Ulm"}}', tools=TOOLS)
    assert text_of(chunks) == ""
    (call,) = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
    assert call.function is not None
    assert (call.index, call.type, call.function.name) == (0, "function", "weather")
    assert call.function.arguments == '{"city":"Ulm"}'


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('call:weather {"town": 1}\nagain: call:weather {"town": 1}', {"tools": TOOLS}),
        ("say: sunny\nagain: say: sunny", {"tools": TOOLS, "tool_choice": "required"}),
        ("say: sunny\nagain: say: sunny", {"response_format": {"type": "json_object"}}),
    ],
)
@pytest.mark.parametrize("streaming", [False, True])
def test_an_answer_without_its_form_is_an_error(
    client: OpenAI, text: str, options: dict[str, Any], streaming: bool
) -> None:
    with pytest.raises(openai.InternalServerError) as failed:
        client.chat.completions.create(model="auto", messages=user(text), stream=streaming, **options)
    assert (failed.value.status_code, failed.value.code) == (502, "invalid_output")


def test_json_by_a_schema(client: OpenAI) -> None:
    class City(pydantic.BaseModel):
        city: str

    answer = client.chat.completions.parse(
        model="auto", messages=user('fence: {"town": 1}\nagain: say: {"city": "Ulm"}'), response_format=City
    )
    assert answer.choices[0].message.parsed == City(city="Ulm")


def test_a_retry_with_the_same_key_gives_the_same_calls(client: OpenAI) -> None:
    def ask() -> Any:
        return client.chat.completions.create(
            model="auto", messages=user("call:weather {}"), tools=ANYWHERE, extra_headers={"Idempotency-Key": "calls"}
        )

    first, second = ask(), ask()
    assert first.choices[0].message.tool_calls == second.choices[0].message.tool_calls
    assert second.choices[0].finish_reason == "tool_calls"


def test_leaving_in_mid_answer_cancels(stack: Stack, key: str, client: OpenAI) -> None:
    with client.chat.completions.with_streaming_response.create(
        model="auto", messages=user("n:3000 itl:10"), stream=True
    ) as response:
        run_id = response.headers["x-parley-run-id"]
        next(response.iter_lines())
    run = wait_for_state(stack, key, run_id, not_in={"queued", "running"})
    assert run["state"] == "cancelled"
    assert run["completion_tokens"] < 1_000


def test_leaving_before_an_unstreamed_answer_cancels(stack: Stack, key: str, client: OpenAI) -> None:
    before = time.time()
    with pytest.raises(openai.APITimeoutError):
        client.chat.completions.create(model="auto", messages=user("n:3000 itl:10"), timeout=0.8)
    listed = stack.manage("shell", "-c", _LAST_RUN).strip().splitlines()[-1]
    run = wait_for_state(stack, key, listed, not_in={"queued", "running"})
    assert run["state"] == "cancelled"
    assert time.time() - before < 20


_LAST_RUN = "from apps.conversations.models import Run; print(Run.objects.latest('created_at').id)"


def test_a_detached_answer_goes_on(stack: Stack, key: str, client: OpenAI) -> None:
    with client.chat.completions.with_streaming_response.create(
        model="auto", messages=user("n:60 itl:10"), stream=True, extra_headers={"x-parley-detach": "true"}
    ) as response:
        run_id = response.headers["x-parley-run-id"]
        next(response.iter_lines())
    run = wait_for_state(stack, key, run_id, not_in={"queued", "running"})
    assert (run["state"], run["completion_tokens"]) == ("completed", 60)


def test_a_retry_with_the_same_key_is_the_same_answer(client: OpenAI) -> None:
    def ask(text: str) -> Any:
        return client.chat.completions.create(
            model="auto", messages=user(text), extra_headers={"Idempotency-Key": "order-66"}
        )

    first, second = ask("n:5"), ask("n:5")
    assert first.id == second.id
    assert first.choices[0].message.content == second.choices[0].message.content
    with pytest.raises(openai.BadRequestError) as other:
        ask("n:6")
    assert other.value.code == "idempotency_mismatch"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"n": 2}, "n"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"tools": [{"type": "function", "function": {"name": "no spaces"}}]}, "tools[0].function.name"),
        ({"tools": [{"type": "function", "function": {"name": "nul", "description": "\x00"}}]}, "tools"),
        ({"tools": [{"type": "web_search"}]}, "tools[0]"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"parallel_tool_calls": "perhaps"}, "parallel_tool_calls"),
        ({"logprobs": True}, "logprobs"),
        ({"temperature": 3}, "temperature"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "tool", "content": "x", "tool_call_id": "1"}]}, "messages[0].tool_call_id"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
        ({"messages": [{"role": "user", "content": "x", "tool_calls": [CALLED]}]}, "messages[0].tool_calls"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "1"}]}]}, "messages[0].tool_calls[0].function"),
        ({"messages": [{"role": "assistant", "tool_calls": [CALLED | {"id": "\x00"}]}]}, "messages[0]"),
        ({"messages": [{"role": "function", "name": "f", "content": "x"}]}, "messages[0]"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": "a\x00b"}]}, "messages[0].content"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]},
            "messages[0].content[0]",
        ),
        ({"stop": ["a", "b", "c", "d", "e"]}, "stop"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(client: OpenAI, body: dict[str, Any], param: str) -> None:
    request: dict[str, Any] = {"model": "auto", "messages": user("hello")} | body
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(**request)
    assert refused.value.param == param
    assert refused.value.type == "invalid_request_error"
    assert refused.value.message


def test_an_unknown_model_and_a_bad_key_have_openais_codes(stack: Stack, client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as model:
        client.chat.completions.create(model="gpt-9", messages=user("hello"))
    assert model.value.code == "model_not_found"
    stranger = OpenAI(base_url=f"{stack.url()}/v1", api_key="pk_wrong", max_retries=0)
    with stranger, pytest.raises(openai.AuthenticationError) as key:
        stranger.models.list()
    assert key.value.code == "invalid_api_key"


def test_a_two_megabyte_message_is_too_large(client: OpenAI) -> None:
    with pytest.raises(openai.APIStatusError) as refused:
        client.chat.completions.create(model="auto", messages=user("x" * (2 << 20)))
    assert refused.value.status_code == 413
    assert refused.value.code == "request_too_large"


def test_headers_tell_the_request_and_what_is_left(client: OpenAI) -> None:
    response = client.chat.completions.with_raw_response.create(
        model="auto", messages=user("n:3"), extra_headers={"x-request-id": "my-request-0001"}
    )
    assert response.headers["x-request-id"] == "my-request-0001"
    assert int(response.headers["x-ratelimit-remaining-requests"]) <= int(
        response.headers["x-ratelimit-limit-requests"]
    )
    assert response.headers["x-ratelimit-reset-requests"].endswith("s")
    assert response.parse().choices[0].message.content


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1/embeddings", "/v1/chat", "/v1/models/a/b"])
def test_other_addresses_are_unknown_in_openais_shape(stack: Stack, key: str, path: str) -> None:
    request = urllib.request.Request(f"{stack.url()}{path}", headers={"authorization": f"Bearer {key}"})
    with pytest.raises(urllib.error.HTTPError) as missing:
        urllib.request.urlopen(request, timeout=10)
    with missing.value as answer:
        assert answer.status == 404
        assert set(json.load(answer)["error"]) == {"message", "type", "param", "code"}
