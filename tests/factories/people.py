"""A person with an API client: the actor, and requests as they send them."""

from __future__ import annotations

from typing import Any

import orjson
from django.http import HttpResponse
from django.test import Client

from apps.accounts.types import Actor
from tests.factories.accounts import make_actor, make_key


class Person:
    """Signed in by a key. `body` of the last answer is read with `.json()`."""

    def __init__(self, actor: Actor | None = None) -> None:
        self.actor = actor or make_actor()
        self.client = Client(headers={"authorization": f"Bearer {make_key(self.actor).key}"})

    def get(self, path: str, **query: Any) -> HttpResponse:
        return self._seen(self.client.get(path, query))

    def post(self, path: str, body: Any = None, **headers: str) -> HttpResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._seen(self.client.post(path, body or {}, content_type="application/json", headers=named))

    def patch(self, path: str, body: Any) -> HttpResponse:
        return self._seen(self.client.patch(path, body, content_type="application/json"))

    def delete(self, path: str) -> HttpResponse:
        return self._seen(self.client.delete(path))

    @staticmethod
    def _seen(response: Any) -> HttpResponse:
        """Every answer has a request id, and every error says its code and what to do."""
        assert response.headers["x-request-id"]
        if response.status_code >= 400:
            problem = response.json()
            assert response.headers["content-type"] == "application/problem+json"
            assert problem["status"] == response.status_code
            assert problem["code"]
            assert len(problem["detail"]) > 10
        answer: HttpResponse = response
        return answer


def shown(response: HttpResponse, status: int = 200) -> Any:
    """The JSON of an answer that must have this status."""
    assert response.status_code == status, response.content[:500]
    return orjson.loads(response.content) if response.content else None


def what_is_said(response: HttpResponse) -> dict[str, Any]:
    """An error without what differs from request to request."""
    return {key: value for key, value in shown(response, response.status_code).items() if key != "request_id"}
