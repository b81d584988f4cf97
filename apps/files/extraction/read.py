"""The child's job of reading a whole document: one extractor a kind, one message a page."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from apps.files.extraction.answer import Job, page_message, say, say_raw
from apps.files.extraction.types import Document, Element, ExtractionFailed, Heading, Notice, PageRecord, Reason

if TYPE_CHECKING:
    from apps.files.extraction.content import Scope
    from apps.files.extraction.pdf.document import PdfDocument


@dataclass(frozen=True, slots=True)
class _Kept:
    """A picture that the next page refers to."""

    key: str
    data: bytes


_Said = PageRecord | Document | _Kept


def _with_pictures(pages: Iterable[PageRecord], scope: Scope) -> Iterator[PageRecord | _Kept]:
    """Each page behind those of its pictures that were not handed on yet."""
    for page in pages:
        for element in page.elements:
            key = (element.picture or "").partition("/")[0]
            if key and (data := scope.spent.pictures.take(key)):
                yield _Kept(key, data)
        yield page


def _pdf(job: Job) -> Iterator[_Said]:
    from apps.files.extraction.pdf.document import PdfDocument
    from apps.files.extraction.pdf.read import read_pages

    source = int(job["source"])
    with PdfDocument(source, os.fstat(source).st_size) as document:
        most = int(job["max_pages"])
        count = min(document.page_count, most)
        attached, scope = _attached(job, document, most - count)
        if document.page_count > count or document.breaks_off:
            scope.notice(Notice.CUT_SHORT)
        notices = tuple(sorted(scope.spent.notices))
        yield Document(page_count=count + len(attached), title=document.title, notices=notices)
        headings = tuple(Heading(level, text) for level, text in job["headings"])
        skip = frozenset(job["skip"])
        yield from read_pages(
            document,
            int(job["first"]),
            count,
            headings=headings,
            skip=skip,
            announce=lambda number: say({"at": number}),
            pinned=_pinned(int(job["unpacked_bytes"])) if job["attached"] else None,
        )
        numbered = (replace(page, number=page.number + count) for page in attached)
        yield from _with_pictures((page for page in numbered if page.number >= int(job["first"])), scope)


def _attached(job: Job, document: PdfDocument, room: int) -> tuple[list[PageRecord], Scope]:
    """Pages of the files embedded in a PDF, at most `room`. Without `job["attached"]` it is only said that there are
    some: reading them has ended a child before."""
    from apps.files.extraction.content import Scope
    from apps.files.extraction.pdf.attached import count_embedded, embedded
    from apps.files.extraction.readers import read_part

    scope = Scope.of(int(job["unpacked_bytes"]), read_part)
    if not count_embedded(document):
        return [], scope
    if not job["attached"]:
        scope.notice(Notice.PARTS_UNREAD)
        return [], scope
    say({"at": document.page_count + 1})
    from apps.files.extraction.paging import cut_pages

    pages = cut_pages(*embedded(document, scope))
    if len(pages) > room:
        scope.notice(Notice.CUT_SHORT)
    return pages[:room], scope


def _pinned(unpacked_bytes: int) -> Callable[[object], list[Element]]:
    """Reads the file that an annotation holds; the scope is one for all pages, made when the first is met."""
    scopes: list[Scope] = []

    def read(annotation: object) -> list[Element]:
        from apps.files.extraction.content import Scope
        from apps.files.extraction.pdf.attached import pinned_to
        from apps.files.extraction.readers import read_part

        if not scopes:
            scopes.append(Scope.of(unpacked_bytes, read_part))
        return pinned_to(annotation, scopes[0])

    return read


def _flowing(job: Job) -> Iterator[_Said]:
    """Kinds without pages of their own: all elements first, then cut."""
    from apps.files.extraction.content import MAX_ELEMENTS, Scope
    from apps.files.extraction.paging import cut_pages
    from apps.files.extraction.readers import read_part, reader_of

    scope = Scope.of(int(job["unpacked_bytes"]), read_part, pictured=job["pictured"])
    with os.fdopen(int(job["source"]), "rb", closefd=False) as file:
        content = reader_of(job["kind"])(file, scope)
    if not content.elements:
        raise ExtractionFailed(Reason.EMPTY)
    pages, most = cut_pages(*content.sections), int(job["max_pages"])
    if len(pages) > most or len(content.elements) >= MAX_ELEMENTS:
        scope.notice(Notice.CUT_SHORT)
    pages = pages[:most]
    yield Document(page_count=len(pages), title=content.title, notices=tuple(sorted(scope.spent.notices)))
    yield from _with_pictures(pages[int(job["first"]) - 1 :], scope)


def _image(job: Job) -> Iterator[_Said]:
    from apps.files.extraction import image

    sizes = image.sizes(int(job["source"]), max_pixels=int(job["max_pixels"]), most=int(job["max_pages"]))
    yield Document(page_count=len(sizes))
    for number, (width, height) in enumerate(sizes, start=1):
        if number >= int(job["first"]):
            yield PageRecord(number=number, width=float(width), height=float(height), needs_ocr=True)


def work(job: Job) -> None:
    read = {"pdf": _pdf, "image": _image}.get(job["kind"], _flowing)
    try:
        for said in read(job):
            if isinstance(said, Document):
                say({"document": {"page_count": said.page_count, "title": said.title, "notices": said.notices}})
            elif isinstance(said, _Kept):
                say({"kept": {"key": said.key, "size": len(said.data)}})
                say_raw(said.data)
            else:
                say(page_message(said))
    except RecursionError:
        raise ExtractionFailed(Reason.DAMAGED) from None
    say({"end": True})
