"""How the child answers: one JSON message a line on its standard output."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from apps.files.extraction.language import with_languages
from apps.files.extraction.types import PageRecord

Job = Mapping[str, Any]


def say(message: Mapping[str, Any]) -> None:
    """Write one message, all of it, at once."""
    text = json.dumps(message, separators=(",", ":"), ensure_ascii=False)
    say_raw(text.encode("utf-8", "replace") + b"\n")


def say_raw(data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(1, rest) :]


def page_message(page: PageRecord) -> dict[str, Any]:
    return {
        "page": {
            "number": page.number,
            "source": page.source,
            "text": page.text,
            "width": page.width,
            "height": page.height,
            "elements": [element.as_json() for element in with_languages(page.elements)],
            "headings": [{"level": heading.level, "text": heading.text} for heading in page.headings],
            "needs_ocr": page.needs_ocr,
            "confidence": page.confidence,
            "error": page.error.value if page.error else None,
        }
    }
