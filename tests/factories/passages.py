"""Files with pages that were read already, made as rows: for tests of what comes after the reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal
from uuid import UUID, uuid4

from django.utils import timezone

from apps.accounts.types import Actor
from apps.files.indexing import index_page
from apps.files.models import File, FileState, Page, PageState
from apps.files.types import Locator, PassageHit


def make_file(actor: Actor, *, name: str = "report.pdf", pages: int = 0, state: str = FileState.READY) -> File:
    deleted = timezone.now() if state == FileState.DELETED else None
    return File.objects.create(
        organization_id=actor.organization_id,
        owner_id=actor.user_id,
        name=name,
        size=1,
        content_type="application/pdf",
        kind="pdf",
        state=state,
        page_count=pages or None,
        deleted_at=deleted,
        object_key=f"{name}-{actor.user_id}",
    )


def elements(text: str) -> list[dict[str, Any]]:
    """A heading for each line that begins with `# `, paragraphs for the others, one below the other."""
    made: list[dict[str, Any]] = []
    lines = [line for line in text.split("\n") if line.strip()]
    for row, line in enumerate(lines):
        box = [0.1, round(row / len(lines), 4), 0.9, round((row + 0.9) / len(lines), 4)]
        title = line.startswith("# ")
        body = line.removeprefix("# ")
        made.append({"category": "Title" if title else "NarrativeText", "text": body, "box": box})
        made[-1] |= {"level": 1} if title else {}
    return made


def add_page(file: File, number: int, text: str = "", *, state: str = PageState.READY, source: str = "digital") -> UUID:
    """A page as the parser leaves it; a ready one is indexed."""
    page = Page.objects.create(
        file=file,
        organization_id=file.organization_id,
        number=number,
        state=state,
        source=source,
        text=text.replace("# ", ""),
        elements=elements(text),
    )
    if state == PageState.READY:
        index_page(page.id)
    return page.id


def make_document(actor: Actor, texts: Sequence[str], *, name: str = "report.pdf") -> File:
    """A file whose pages hold these texts, indexed."""
    file = make_file(actor, name=name, pages=len(texts))
    for number, text in enumerate(texts, start=1):
        add_page(file, number, text)
    return file


def make_hit(
    text: str,
    *,
    page: int = 1,
    name: str = "report.pdf",
    heading: str = "",
    source: Literal["digital", "ocr"] = "digital",
    table: int | None = None,
    locator: Locator | None = None,
) -> PassageHit:
    """A passage as search gives it, without a row."""
    return PassageHit(
        passage_id=uuid4(),
        file_id=UUID(int=1),
        file_name=name,
        page=page,
        heading=heading,
        text=text,
        boxes=((0.1, 0.1, 0.9, 0.2),),
        source=source,
        score=1.0,
        table=table,
        locator=locator,
    )
