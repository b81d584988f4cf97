"""What was filled into the fields of a page, and notes that were put on it: neither is in the page's own text."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator

import pypdfium2_raw as pdfium

from apps.files.extraction.assemble import clean
from apps.files.extraction.pdf.document import Page, PdfDocument
from apps.files.extraction.types import Category, Element

_MAX_ANNOTATIONS = 2_000
_MAX_UNITS = 20_000
_UNREAD = (
    pdfium.FPDF_ANNOT_LINK,
    pdfium.FPDF_ANNOT_POPUP,
    pdfium.FPDF_ANNOT_FILEATTACHMENT,
)  # a pop-up repeats its note
_CHECKED = (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON)
_Getter = Callable[[object, int], int]


def _text(get: _Getter) -> str:
    size = min(int(get(None, 0)), 2 * _MAX_UNITS)
    if size <= 2:
        return ""
    buffer = (ctypes.c_ushort * (size // 2))()
    get(buffer, size)
    return clean(bytes(buffer).decode("utf-16-le", "replace").partition("\0")[0].replace("\r", " "))


def _value(document: PdfDocument, annotation: object) -> str:
    form = document.form
    value = _text(lambda buffer, size: pdfium.FPDFAnnot_GetFormFieldValue(form, annotation, buffer, size))
    if int(pdfium.FPDFAnnot_GetFormFieldType(form, annotation)) in _CHECKED:
        return "checked" if value not in ("", "Off") else ""
    return value


def _field(document: PdfDocument, annotation: object) -> tuple[Category, str] | None:
    kind = int(pdfium.FPDFAnnot_GetSubtype(annotation))
    if kind in _UNREAD:
        return None
    if kind != pdfium.FPDF_ANNOT_WIDGET:
        note = _text(lambda buffer, size: pdfium.FPDFAnnot_GetStringValue(annotation, b"Contents", buffer, size))
        return (Category.UNCATEGORIZED_TEXT, note) if note else None
    if not document.form or not (value := _value(document, annotation)):
        return None
    name = _text(lambda buffer, size: pdfium.FPDFAnnot_GetFormFieldName(document.form, annotation, buffer, size))
    return Category.FORM_KEYS_VALUES, f"{name}: {value}" if name else value


def read_fields(document: PdfDocument, page: Page) -> Iterator[Element]:
    count = min(int(pdfium.FPDFPage_GetAnnotCount(page.handle)), _MAX_ANNOTATIONS)
    for index in range(count):
        annotation = pdfium.FPDFPage_GetAnnot(page.handle, index)
        if not annotation:
            continue
        try:
            if found := _field(document, annotation):
                box = pdfium.FS_RECTF()
                pdfium.FPDFAnnot_GetRect(annotation, box)
                yield Element(*found, box=page.fractions(box.left, box.bottom, box.right, box.top))
        finally:
            pdfium.FPDFPage_CloseAnnot(annotation)
