"""The OpenAPI schema and its docs page."""

from __future__ import annotations

import io
import re
from typing import Any

import orjson
import pytest
from django.core.management import call_command
from django.test import Client

from apps.api.api.schema import operation_name
from apps.api.realtime.app import ENDPOINTS

METHODS = {"get", "put", "post", "patch", "delete"}


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """Generated the strict way: any warning fails, and the result is checked against OpenAPI 3.1."""
    out = io.StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", format="openapi-json", stdout=out)
    parsed: dict[str, Any] = orjson.loads(out.getvalue())
    return parsed


def operations(schema: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, operation)
        for path, item in schema["paths"].items()
        for method, operation in item.items()
        if method in METHODS
    ]


def test_it_is_openapi_3_1_and_names_every_operation_once(schema: dict[str, Any]) -> None:
    assert schema["openapi"].startswith("3.1")
    names = [operation["operationId"] for _, _, operation in operations(schema)]
    assert len(names) == len(set(names)) > 30


def test_every_operation_says_what_it_is_and_how_it_fails(schema: dict[str, Any]) -> None:
    for method, path, operation in operations(schema):
        where = f"{method} {path}"
        assert operation.get("summary"), where
        assert operation.get("tags"), where
        statuses = set(operation["responses"])
        if path != "/api/site":
            assert "401" in statuses, where
            assert operation["security"], where
        if "{" in path:
            assert "404" in statuses, where
        for status, response in operation["responses"].items():
            if int(status) >= 400 and status != "410":
                assert all("example" in media for media in response["content"].values()), f"{where} {status}"


def test_every_request_body_has_an_example(schema: dict[str, Any]) -> None:
    for method, path, operation in operations(schema):
        for media in operation.get("requestBody", {}).get("content", {}).values():
            assert "example" in media or "examples" in media, f"{method} {path}"


def test_every_address_of_v1_is_described(schema: dict[str, Any]) -> None:
    described = {(path, method.upper()) for method, path, _ in operations(schema) if path.startswith("/v1")}
    assert described == {(path, method) for path, methods in ENDPOINTS.items() for method in methods}


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("get", "conversations", "list_conversations"),
        ("get", "conversations/{id}", "get_conversation"),
        ("post", "conversations/{id}/messages", "create_conversation_message"),
        ("post", "runs/{id}/cancel", "cancel_run"),
        ("get", "files/{id}/pages/{number}/image", "get_file_page_image"),
        ("delete", "keys/{id}", "delete_key"),
    ],
)
def test_operations_are_named_after_their_address(method: str, path: str, name: str) -> None:
    assert operation_name(method, path.split("/")) == name


def test_the_schema_is_served_to_anybody(client: Client) -> None:
    answer = client.get("/api/schema")
    assert answer.status_code == 200
    assert answer.json()["info"]["title"] == "Parley API"


@pytest.mark.django_db  # closing a response looks at connections that tests before this one left
def test_the_docs_page_needs_no_inline_script_and_no_other_host(client: Client) -> None:
    page = client.get("/api/docs")
    html = page.content.decode()
    policy = page["Content-Security-Policy"]

    assert page.status_code == 200
    assert "script-src 'self';" in policy
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", html, re.DOTALL)
    assert len(scripts) == 3
    addresses = re.findall(r'(?:src|href)="([^"]+)"', html)
    assert all("src=" in attributes and not body.strip() for attributes, body in scripts)
    assert len(addresses) >= 4
    for address in addresses:
        assert address.startswith("/"), address
        answer = client.get(address.replace("&amp;", "&"))
        assert answer.status_code == 200, address
        assert answer.getvalue()
        answer.close()
