"""A replica that makes the vectors fails and comes back, with real web, runner and worker: people's questions and files
go on by keywords, and what was missed is made up for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.client import Api, eventually
from tests.factories.pooling import pooling_server
from tests.stack import Stack

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]


def upload(api: Api, name: str) -> str:
    text = f"The barometer broke on the pass in a storm, says {name}.".encode()
    started = api.call("POST", "/api/files", {"name": name, "size": len(text), "content_type": ""}).must_be(201)
    (part,) = started["upload"]["parts"]
    url = part["url"] if part["url"].startswith("http") else f"http://{api.host}:{api.port}{part['url']}"
    etag = httpx.put(url, content=text).raise_for_status().headers["etag"]
    id: str = started["file"]["id"]
    api.call("POST", f"/api/files/{id}/complete", {"parts": [{"number": 1, "etag": etag}]}).must_be(200)
    return id


def becomes(api: Api, file: str, searchable: str) -> Any:
    def look() -> Any:
        seen = api.get(f"/api/files/{file}")
        return seen if seen["state"] == "ready" and seen["searchable"] == searchable else None

    return eventually(look, within=60)


def mode(api: Api, file: str) -> str:
    """How the passages of an answer about the file were found."""
    asked = api.ask(api.new_conversation(), "What broke on the pass?", file_ids=[file])
    api.read(asked["run"]["id"])
    context = api.get(f"/api/runs/{asked['run']['id']}/context")
    assert "barometer" in context["passages"][0]["text"]
    found: str = context["mode"]
    return found


def test_files_and_questions_outlive_what_makes_their_vectors(start_stack: Callable[..., Stack]) -> None:
    with pooling_server() as (url, pooling):
        stack = start_stack(
            replicas=0,
            workers=1,
            environment={
                "PARLEY_REPLICA_URLS": f"fake={url},e={url}?purpose=embeddings",
                "PARLEY_EMBEDDING_MODEL": "e",
            },
        )
        api = Api(stack.url(), stack.api_key())
        before = upload(api, "before.txt")
        becomes(api, before, "hybrid")
        assert mode(api, before) == "hybrid"

        pooling.fault = "fail"
        meanwhile = upload(api, "meanwhile.txt")
        becomes(api, meanwhile, "keyword")
        assert mode(api, meanwhile) == "away"

        pooling.fault = ""
        becomes(api, meanwhile, "hybrid")
        eventually(lambda: mode(api, meanwhile) == "hybrid", within=30, every=1)
