"""The child's job of reading a whole document: one extractor a kind, one message a page."""

from __future__ import annotations

import os
from collections.abc import Iterator

from apps.files.extraction.answer import Job, page_message, say
from apps.files.extraction.types import Document, ExtractionFailed, Heading, PageRecord, Reason


def _pdf(job: Job) -> Iterator[PageRecord | Document]:
    from apps.files.extraction.pdf.document import PdfDocument
    from apps.files.extraction.pdf.read import read_pages

    source = int(job["source"])
    with PdfDocument(source, os.fstat(source).st_size) as document:
        if document.page_count > int(job["max_pages"]):
            raise ExtractionFailed(Reason.TOO_MANY_PAGES)
        yield Document(page_count=document.page_count, title=document.title)
        headings = tuple(Heading(level, text) for level, text in job["headings"])
        skip = frozenset(job["skip"])
        yield from read_pages(
            document, int(job["first"]), headings=headings, skip=skip, announce=lambda number: say({"at": number})
        )


def _flowing(job: Job) -> Iterator[PageRecord | Document]:
    """Kinds without pages of their own: all elements first, then cut."""
    from apps.files.extraction.paging import cut_pages

    source = int(job["source"])
    if job["kind"] == "docx":
        from apps.files.extraction import docx

        elements, title = docx.read(source, unpacked_bytes=int(job["unpacked_bytes"]))
    else:
        from apps.files.extraction import plain

        elements, title = plain.read(source, markdown=job["kind"] == "markdown")
    pages = cut_pages(elements)
    if not pages:
        raise ExtractionFailed(Reason.EMPTY)
    if len(pages) > int(job["max_pages"]):
        raise ExtractionFailed(Reason.TOO_MANY_PAGES)
    yield Document(page_count=len(pages), title=title)
    yield from pages[int(job["first"]) - 1 :]


def _image(job: Job) -> Iterator[PageRecord | Document]:
    from apps.files.extraction import image

    width, height = image.size(int(job["source"]), max_pixels=int(job["max_pixels"]))
    yield Document(page_count=1)
    yield PageRecord(number=1, width=float(width), height=float(height), needs_ocr=True)


_READERS = {"pdf": _pdf, "docx": _flowing, "text": _flowing, "markdown": _flowing, "image": _image}


def work(job: Job) -> None:
    if job["kind"] not in _READERS:
        raise ExtractionFailed(Reason.UNSUPPORTED)
    for said in _READERS[job["kind"]](job):
        if isinstance(said, Document):
            say({"document": {"page_count": said.page_count, "title": said.title}})
        else:
            say(page_message(said))
    say({"end": True})
