"""A PDF inside another file: the text of its pages, and those that are pictures of text as pictures."""

from __future__ import annotations

import io
import os
import tempfile
import time
from dataclasses import replace

from apps.files.extraction.content import Content, Scope
from apps.files.extraction.pdf.attached import embedded, pinned_to
from apps.files.extraction.pdf.document import PdfDocument
from apps.files.extraction.pdf.read import read_pages
from apps.files.extraction.pdf.render import pixels, scale_for
from apps.files.extraction.types import Element, ExtractionFailed, Notice, PageRecord, Reason
from apps.files.types import MAX_PAGES

_DPI = 200
_MAX_PIXELS = 25_000_000
_QUALITY = 90
_USUAL_BYTES = 1 << 20


def read(data: bytes, scope: Scope) -> Content:
    """Raises ExtractionFailed."""
    with tempfile.TemporaryFile(dir=os.curdir) as file:
        file.write(data)
        file.flush()
        with PdfDocument(file.fileno(), len(data)) as document:
            last = min(document.page_count, MAX_PAGES)
            if document.page_count > last or document.breaks_off:
                scope.notice(Notice.CUT_SHORT)
            pages = read_pages(document, 1, last, pinned=lambda annotation: pinned_to(annotation, scope))
            sections = [_elements(document, page, scope) for page in pages]
            return Content([*sections, *embedded(document, scope)])


def _elements(document: PdfDocument, page: PageRecord, scope: Scope) -> list[Element]:
    if page.error:
        scope.notice(Notice.PARTS_UNREAD)
    # The boxes are those of another file's pages.
    own = [replace(element, box=None, lines=()) for element in page.elements]
    drawn = scope.picture(_USUAL_BYTES, lambda: _drawn(document, page.number, scope)) if page.needs_ocr else []
    doubtful = page.confidence is not None
    return drawn if drawn and doubtful else [*own, *drawn]


def _drawn(document: PdfDocument, number: int, scope: Scope) -> bytes:
    """The page as a JPEG. Raises ExtractionFailed, also when drawing has taken all its time."""
    if scope.spent.pictures.full or scope.spent.drawing_s <= 0:
        raise ExtractionFailed(Reason.TOO_LARGE)
    begun = time.monotonic()
    buffer = io.BytesIO()
    try:
        with document.page(number) as page:
            scale = scale_for(page, scale=_DPI / 72, max_pixels=_MAX_PIXELS)
            pixels(page, scale=scale, grey=True).save(buffer, "JPEG", quality=_QUALITY)
    except ValueError as error:
        raise ExtractionFailed(Reason.DAMAGED) from error
    finally:
        scope.spent.drawing_s -= time.monotonic() - begun
    return buffer.getvalue()
