"""Refusals of `/v1` before any run starts: limits, overload, and keys that may not be used here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from apps.config.asgi import application
from apps.conversations.models import Run
from apps.conversations.realtime import relay
from tests.factories.accounts import make_actor, make_key, make_user
from tests.factories.inference import publish_replica

pytestmark = pytest.mark.django_db(transaction=True)
BODY: dict[str, Any] = {"model": "auto", "messages": [{"role": "user", "content": "hello"}]}
CHAT = "/v1/chat/completions"


@pytest.fixture
def key() -> dict[str, str]:
    make_user()
    made = make_key(make_actor(make_user()), full=False)
    return {"authorization": f"Bearer {made.key}"}


@pytest.fixture
async def http(key: dict[str, str]) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=application, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=key) as client:
        yield client
    await relay().stop()
    relay.cache_clear()


async def test_an_inference_key_is_enough(http: httpx.AsyncClient) -> None:
    publish_replica()
    answer = await http.get("/v1/models")
    assert answer.status_code == 200
    assert [model["id"] for model in answer.json()["data"]] == ["auto", "fake"]


async def test_too_many_requests_get_429_with_when_to_come_back(http: httpx.AsyncClient, settings: Any) -> None:
    settings.RUNS_PER_USER_PER_MINUTE = 1
    publish_replica(slots=0)
    first = await http.post(CHAT, json=BODY | {"model": "none"})
    second = await http.post(CHAT, json=BODY)

    assert first.status_code == 404
    assert second.status_code == 429
    assert second.json()["error"] == {
        "message": "You have started 1 answers within a minute. Wait a moment, then send again.",
        "type": "requests",
        "param": None,
        "code": "rate_limit_exceeded",
    }
    assert 1 <= int(second.headers["retry-after"]) <= 60
    assert int(second.headers["retry-after-ms"]) > 1_000
    assert second.headers["x-ratelimit-limit-requests"] == "1"
    assert second.headers["x-ratelimit-remaining-requests"] == "0"


async def test_without_a_model_there_is_503_and_nothing_is_written(http: httpx.AsyncClient) -> None:
    answer = await http.post(CHAT, json=BODY)
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "no_replica"
    assert answer.json()["error"]["type"] == "server_error"
    assert int(answer.headers["retry-after"]) >= 1
    assert await Run.objects.acount() == 0


@pytest.mark.parametrize("content", [b"{", b"[]", b'"x"', b"\xff", b""])
async def test_a_body_that_is_no_request_is_refused(http: httpx.AsyncClient, content: bytes) -> None:
    answer = await http.post(CHAT, content=content)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


async def test_keys_are_needed_and_named_in_openais_words(http: httpx.AsyncClient) -> None:
    for headers in ({"authorization": ""}, {"authorization": "Bearer pk_wrong"}, {"authorization": "Basic eDp5"}):
        answer = await http.post(CHAT, json=BODY, headers=headers)
        assert answer.status_code == 401
        assert answer.json()["error"]["code"] == "invalid_api_key"
        assert answer.headers["x-request-id"]


async def test_a_wrong_method_says_which_is_right(http: httpx.AsyncClient) -> None:
    answer = await http.get(CHAT)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"


async def test_a_bad_request_id_is_replaced(http: httpx.AsyncClient) -> None:
    answer = await http.get("/v1/models", headers={"x-request-id": "evil\x01id"})
    assert answer.headers["x-request-id"] != "evil\x01id"


@pytest.mark.parametrize(
    ("field", "value", "param"),
    [
        ("stop", ["x" * 300], "stop[0]"),
        ("stop", ["a", "b", "c", "d", "e"], "stop"),
        ("priority", -5, "priority"),
        ("cache_salt", "someone", "cache_salt"),
        ("guided_regex", "(a+)+$", "guided_regex"),
        (
            "response_format",
            {
                "type": "json_schema",
                "json_schema": {
                    "name": "n",
                    "schema": {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(5_000)}},
                },
            },
            "response_format.json_schema.schema",
        ),
    ],
)
async def test_what_would_occupy_a_replica_is_refused_by_its_name(
    http: httpx.AsyncClient, field: str, value: Any, param: str
) -> None:
    publish_replica()
    answer = await http.post(CHAT, json=BODY | {field: value})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"].startswith(param)
    assert await Run.objects.acount() == 0
