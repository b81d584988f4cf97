"""Files that a PDF carries: in its tree of embedded files (portfolios and invoices among them), or pinned to a page."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath

import pypdfium2_raw as pdfium

from apps.files.extraction.assemble import clean
from apps.files.extraction.content import MAX_PARTS, Scope
from apps.files.extraction.pdf.document import PdfDocument
from apps.files.extraction.pdf.strings import wide_text
from apps.files.extraction.types import Element, ExtractionFailed, Notice, Reason


def count_embedded(document: PdfDocument) -> int:
    return max(0, int(pdfium.FPDFDoc_GetAttachmentCount(document.handle)))


def name_of(attachment: object, number: int) -> str:
    """The file's name without folders; portfolios put a folder's number before it."""
    name = clean(wide_text(lambda buffer, size: pdfium.FPDFAttachment_GetName(attachment, buffer, size)))
    return PurePosixPath(name.replace("\\", "/")).name or f"part {number}"


def _bytes_of(attachment: object, scope: Scope) -> bytes:
    """Raises ExtractionFailed."""
    size = ctypes.c_ulong()
    if not pdfium.FPDFAttachment_GetFile(attachment, None, 0, size):
        raise ExtractionFailed(Reason.DAMAGED)
    scope.spend(size.value)
    buffer = ctypes.create_string_buffer(size.value)
    if not pdfium.FPDFAttachment_GetFile(attachment, buffer, size.value, size):
        raise ExtractionFailed(Reason.DAMAGED)
    return buffer.raw[: size.value]


def sections_of(attachment: object, number: int, scope: Scope) -> list[list[Element]]:
    """Raises ExtractionFailed when all files inside are too large together."""
    return scope.inside(name_of(attachment, number), lambda: _bytes_of(attachment, scope))


def embedded(document: PdfDocument, scope: Scope) -> Iterator[list[Element]]:
    """Sections of every file in the tree. What is too large ends it, and it is said so."""
    for index in range(min(count_embedded(document), MAX_PARTS)):
        attachment = pdfium.FPDFDoc_GetAttachment(document.handle, index)
        if not attachment:
            scope.notice(Notice.PARTS_UNREAD)
            continue
        try:
            yield from sections_of(attachment, index + 1, scope)
        except ExtractionFailed:
            scope.notice(Notice.CUT_SHORT)
            return


def pinned_to(annotation: object, scope: Scope) -> list[Element]:
    """Elements of the file that an annotation holds, under its name, as those of the page that it is pinned to."""
    attachment = pdfium.FPDFAnnot_GetFileAttachment(annotation)
    if not attachment:
        return []
    try:
        sections = sections_of(attachment, scope.spent.parts + 1, scope)
    except ExtractionFailed:
        return []
    # Pictures would be recognised in the place of the page itself.
    found = (element for section in sections for element in section if element.picture is None)
    return [replace(element, box=None, lines=(), locator=None, rows=()) for element in found]
