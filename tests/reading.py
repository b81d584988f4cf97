"""Reads a file as the product does, for tests: the check of what it is, then the sandboxed child."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from apps.files.extraction import Document, PageRecord, run
from apps.files.extraction.types import Category
from apps.files.scanning import inspect
from apps.files.types import kind_of

NO_SOCKET = "/nonexistent/clamd.ctl"


@dataclass
class Read:
    document: Document
    pages: list[PageRecord]

    @property
    def found(self) -> list[tuple[str, str]]:
        return [(element.category.value, element.text) for page in self.pages for element in page.elements]

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self.found]

    @property
    def text(self) -> str:
        return "\n".join(page.text for page in self.pages)

    def of(self, category: Category) -> list[str]:
        return [text for found, text in self.found if found == category.value]


def read(folder: Path, name: str, data: bytes) -> Read:
    kind = kind_of(name)
    assert kind is not None
    path = folder / "object"
    path.write_bytes(data)
    inspect(path, kind, clamd_socket=NO_SOCKET)
    pages: list[PageRecord] = []
    return Read(run(path, kind, on_page=pages.append), pages)
