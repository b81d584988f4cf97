"""What was filled into the fields of a page, notes that were put on it, and files pinned to it: none of it is in the
page's own text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pypdfium2_raw as pdfium

from apps.files.extraction.assemble import clean
from apps.files.extraction.pdf.document import Page, PdfDocument
from apps.files.extraction.pdf.strings import wide_text
from apps.files.extraction.types import Category, Element

_MAX_ANNOTATIONS = 2_000
_MAX_OPTIONS = 1_000
_UNREAD = (pdfium.FPDF_ANNOT_LINK, pdfium.FPDF_ANNOT_POPUP)  # a pop-up repeats its note
_UNSEEN = 0x02 | 0x20  # hidden; not for the screen
_CHOICES = (pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX)
_SWITCHES = (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON)
_Getter = Callable[[object, object, object, int], int]
Pinned = Callable[[object], list[Element]]
"""Elements of the file that an annotation holds."""


def _get(document: PdfDocument, annotation: object, get: _Getter) -> str:
    return clean(wide_text(lambda buffer, size: get(document.form, annotation, buffer, size)))


def _value(document: PdfDocument, annotation: object) -> str:
    """What is filled in. Of a group of radio buttons only the one that was chosen answers."""
    kind = int(pdfium.FPDFAnnot_GetFormFieldType(document.form, annotation))
    if kind in _SWITCHES:
        state = wide_text(lambda buffer, size: pdfium.FPDFAnnot_GetStringValue(annotation, b"AS", buffer, size))
        on = state not in ("", "Off")
        if kind == pdfium.FPDF_FORMFIELD_CHECKBOX:
            return "checked" if on else "not checked"
        return (clean(state) or "checked") if on else ""
    if kind in _CHOICES and (chosen := _chosen(document, annotation)):
        return chosen
    if kind == pdfium.FPDF_FORMFIELD_PUSHBUTTON:
        return ""
    return _get(document, annotation, pdfium.FPDFAnnot_GetFormFieldValue)


def _chosen(document: PdfDocument, annotation: object) -> str:
    """The labels of the options that are chosen; a list may have several."""
    form = document.form
    chosen = []
    for index in range(min(int(pdfium.FPDFAnnot_GetOptionCount(form, annotation)), _MAX_OPTIONS)):
        if pdfium.FPDFAnnot_IsOptionSelected(form, annotation, index):
            label = wide_text(
                lambda buffer, size, at=index: pdfium.FPDFAnnot_GetOptionLabel(form, annotation, at, buffer, size)  # type: ignore[misc]
            )
            chosen.append(clean(label))
    return ", ".join(chosen)


def _label(document: PdfDocument, annotation: object) -> str:
    """What a person is asked, then the name that programs give the field."""
    name = _get(document, annotation, pdfium.FPDFAnnot_GetFormFieldName)
    asked = _get(document, annotation, pdfium.FPDFAnnot_GetFormFieldAlternateName)
    return f"{asked} / {name}" if asked and asked != name else name


def _field(document: PdfDocument, annotation: object, pinned: Pinned | None) -> Iterator[Element]:
    kind = int(pdfium.FPDFAnnot_GetSubtype(annotation))
    if kind in _UNREAD or int(pdfium.FPDFAnnot_GetFlags(annotation)) & _UNSEEN:
        return
    if kind == pdfium.FPDF_ANNOT_FILEATTACHMENT and pinned is not None:
        yield from pinned(annotation)
    elif kind != pdfium.FPDF_ANNOT_WIDGET:
        note = wide_text(lambda buffer, size: pdfium.FPDFAnnot_GetStringValue(annotation, b"Contents", buffer, size))
        if note := clean(note):
            yield Element(Category.UNCATEGORIZED_TEXT, note)
    elif document.form and (value := _value(document, annotation)):
        label = _label(document, annotation)
        yield Element(Category.FORM_KEYS_VALUES, f"{label}: {value}" if label else value)


def read_fields(document: PdfDocument, page: Page, pinned: Pinned | None = None) -> Iterator[Element]:
    count = min(int(pdfium.FPDFPage_GetAnnotCount(page.handle)), _MAX_ANNOTATIONS)
    for index in range(count):
        annotation = pdfium.FPDFPage_GetAnnot(page.handle, index)
        if not annotation:
            continue
        try:
            box = pdfium.FS_RECTF()
            pdfium.FPDFAnnot_GetRect(annotation, box)
            place = page.fractions(box.left, box.bottom, box.right, box.top)
            for element in _field(document, annotation, pinned):
                yield replace(element, box=place)
        finally:
            pdfium.FPDFPage_CloseAnnot(annotation)
