"""Reading of files that nobody trusts: pages with typed elements and boxes, recognition, page images.

The parent half (`run`, `ocr_page`, `render_page`) never parses anything itself: it starts
`python -m apps.files.extraction` in a sandbox, validates every record that comes back and kills what
misbehaves. The child half knows neither Django nor the database. Storing pages and deciding when to
read them belongs to `apps.files.tasks`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apps.files.extraction.language import main_language
    from apps.files.extraction.merge import combined, with_picture
    from apps.files.extraction.process import ocr_page, render_page, run, sandbox_report, unlock
    from apps.files.extraction.types import (
        Document,
        Element,
        ExtractionFailed,
        Heading,
        Limits,
        Notice,
        PageRecord,
        Reason,
    )

__all__ = [
    "Document",
    "Element",
    "ExtractionFailed",
    "Heading",
    "Limits",
    "Notice",
    "PageRecord",
    "Reason",
    "combined",
    "main_language",
    "ocr_page",
    "render_page",
    "run",
    "sandbox_report",
    "unlock",
    "with_picture",
]
_ELSEWHERE = {"combined": "merge", "with_picture": "merge", "main_language": "language"}
_ACTIONS = frozenset({"ocr_page", "render_page", "run", "sandbox_report", "unlock"})


def __getattr__(name: str) -> object:
    """The parent half is loaded when first used: the child imports this package too, and must start fast."""
    if name not in __all__:
        raise AttributeError(name)
    module = "process" if name in _ACTIONS else _ELSEWHERE.get(name, "types")
    value: object = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value
