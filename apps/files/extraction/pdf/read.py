"""Pages of a PDF as records, in order. Each waits only for the page after it, which shows what recurs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace

import pypdfium2_raw as pdfium

from apps.files.extraction import furniture
from apps.files.extraction.assemble import Outline, element_of, page_text, within_bounds
from apps.files.extraction.layout import Block, blocks_of
from apps.files.extraction.pdf.document import Page, PdfDocument
from apps.files.extraction.pdf.fields import Pinned, read_fields
from apps.files.extraction.pdf.fonts import unmapped_share
from apps.files.extraction.pdf.hidden import remove_layers
from apps.files.extraction.pdf.lines import PageText, read_lines
from apps.files.extraction.pdf.xfa import described, is_described
from apps.files.extraction.types import Category, Element, Heading, PageRecord, Reason

UNTRUSTED_SHARE = 0.15
_FEW_CHARACTERS = 250
_OBJECTS_LOOKED_AT = 400
_PICTURE_AREA = 0.45


def _has_picture_of_text(page: Page, read: PageText) -> bool:
    """Whether what one sees can hold text that was not read: a scan, or outlines instead of letters."""
    if read.characters >= _FEW_CHARACTERS:
        return False
    count = min(int(pdfium.FPDFPage_CountObjects(page.handle)), _OBJECTS_LOOKED_AT)
    area, paths = 0.0, 0
    for index in range(count):
        shape = pdfium.FPDFPage_GetObject(page.handle, index)
        kind = int(pdfium.FPDFPageObj_GetType(shape))
        if kind in (pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_FORM, pdfium.FPDF_PAGEOBJ_SHADING):
            area += _area(page, shape)
        elif kind == pdfium.FPDF_PAGEOBJ_PATH:
            paths += 1
    outlines = read.characters == 0 and paths >= 40
    return area >= (_PICTURE_AREA if read.characters else 0.02) or outlines


def _area(page: Page, shape: object) -> float:
    left, bottom, right, top = (pdfium.c_float() for _ in range(4))
    if not pdfium.FPDFPageObj_GetBounds(shape, left, bottom, right, top):
        return 0.0
    x0, y0, x1, y1 = page.fractions(left.value, bottom.value, right.value, top.value)
    return (x1 - x0) * (y1 - y0)


def _read_page(document: PdfDocument, number: int, pinned: Pinned | None) -> PageRecord:
    try:
        with document.page(number) as page:
            if document.layers_off:
                remove_layers(page, document.layers_off)
            if document.breaks_off and not pdfium.FPDFPage_CountObjects(page.handle):
                raise ValueError("what is on the page is behind the end")
            read = read_lines(page)
            blocks = blocks_of(read.upright)
            blocks += [Block([line], Category.UNCATEGORIZED_TEXT) for line in read.turned]
            texts = [element for block in blocks if (element := element_of(block)) is not None]
            form = described(document) if number == 1 and is_described(document) else []
            elements = within_bounds([*texts, *form, *read_fields(document, page, pinned)])
            untrusted = read.untrusted if document.maps_characters else max(read.untrusted, unmapped_share(page))
            needs_ocr = untrusted > UNTRUSTED_SHARE or _has_picture_of_text(page, read)
            return PageRecord(
                number=number,
                source="digital",
                width=round(page.width, 2),
                height=round(page.height, 2),
                elements=elements,
                needs_ocr=needs_ocr,
                confidence=round(max(0.0, 1 - untrusted), 4) if untrusted > UNTRUSTED_SHARE else None,
            )
    except ValueError:
        return PageRecord(number=number, error=Reason.DAMAGED)


def _finished(
    record: PageRecord, before: deque[frozenset[furniture.Mark]], after: PageRecord | None, outline: Outline
) -> PageRecord:
    neighbours = [*before, *([furniture.marks(after.elements)] if after else [])]
    elements: tuple[Element, ...] = furniture.set_apart(record.elements, neighbours)
    finished = replace(record, elements=elements, text=page_text(elements), headings=outline.path)
    if not record.needs_ocr:  # else its headings may be gibberish
        outline.pass_over(elements)
    return finished


def read_pages(
    document: PdfDocument,
    first: int,
    last: int,
    *,
    headings: tuple[Heading, ...] = (),
    skip: frozenset[int] = frozenset(),
    announce: Callable[[int], None] = lambda number: None,
    pinned: Pinned | None = None,
) -> Iterator[PageRecord]:
    """Records of pages `first` to `last`. `announce` hears which page is read next; those in `skip` are not.
    `pinned` reads the files that are pinned to pages."""
    outline = Outline(headings)
    before: deque[frozenset[furniture.Mark]] = deque(maxlen=2)
    waiting: PageRecord | None = None
    for number in range(first, last + 1):
        if number in skip:
            record = PageRecord(number=number, error=Reason.CRASHED)
        else:
            announce(number)
            record = _read_page(document, number, pinned)
        if waiting is not None:
            yield _finished(waiting, before, record, outline)
            before.append(furniture.marks(waiting.elements))
        waiting = record
    if waiting is not None:
        yield _finished(waiting, before, None, outline)
