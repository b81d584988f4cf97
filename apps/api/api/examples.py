"""Example request bodies of the native API, shown in the docs where an endpoint brings none of its own."""

from __future__ import annotations

from typing import Any, Final

_CONVERSATION = "/api/conversations/{conversation_id}"
_ID = "0198f2b7-c1c2-7d3f-8a5e-4b9d6c7e8f90"
_CLIENT_ID = "6f1f5d0e-8c0b-4a57-9a3e-2f6f1f0c9b11"

REQUESTS: Final[dict[tuple[str, str], Any]] = {
    ("post", "/api/conversations"): {"title": "Plans for the garden"},
    ("patch", _CONVERSATION): {"title": "The garden in spring", "pinned": True},
    ("post", f"{_CONVERSATION}/branch"): {"message_id": _ID},
    ("post", f"{_CONVERSATION}/messages"): {
        "client_id": _CLIENT_ID,
        "text": "What does the report say about water use?",
        "parent_id": None,
        "file_ids": [_ID],
        "model": "auto",
    },
    ("post", f"{_CONVERSATION}/messages/{{message_id}}/regenerate"): {"client_id": _CLIENT_ID, "model": "auto"},
    ("post", "/api/files/{file_id}/password"): {"password": "what it was saved with"},
    ("post", "/api/files/{file_id}/query"): {"sql": "SELECT region, sum(revenue) FROM sales GROUP BY region"},
    ("post", "/api/files"): {"name": "report.pdf", "size": 1_482_113, "content_type": "application/pdf"},
    ("post", "/api/files/{file_id}/complete"): {
        "parts": [{"number": 1, "etag": "9b2cf535f27731c974343645a3985328"}],
    },
}
