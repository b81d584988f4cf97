"""Forms whose pages are only described (XFA): what they ask and what was filled in, from the description itself.

The page that such a file has of its own says that another program is needed to see the form.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pypdfium2_raw as pdfium

from apps.files.extraction.assemble import clean
from apps.files.extraction.pdf.document import PdfDocument
from apps.files.extraction.types import Category, Element, ExtractionFailed

_LARGEST = 16 << 20
_MAX_ELEMENTS = 5_000
_DYNAMIC = int(getattr(pdfium, "FORMTYPE_XFA_FULL", 2))


def is_described(document: PdfDocument) -> bool:
    return int(pdfium.FPDF_GetFormType(document.handle)) == _DYNAMIC


def _packet(document: PdfDocument, wanted: str) -> bytes:
    for index in range(max(0, int(pdfium.FPDF_GetXFAPacketCount(document.handle)))):
        name = ctypes.create_string_buffer(64)
        pdfium.FPDF_GetXFAPacketName(document.handle, index, name, len(name))
        if name.value.decode("latin-1") != wanted:
            continue
        size = ctypes.c_ulong()
        pdfium.FPDF_GetXFAPacketContent(document.handle, index, None, 0, size)
        if not 0 < size.value <= _LARGEST:
            return b""
        buffer = ctypes.create_string_buffer(size.value)
        pdfium.FPDF_GetXFAPacketContent(document.handle, index, buffer, size.value, size)
        return buffer.raw[: size.value]
    return b""


def _root(data: bytes, wanted: str) -> Any | None:
    from apps.files.extraction.content import parse_xml  # late: few documents need a parser of XML

    try:
        root = parse_xml(data) if data else None
    except ExtractionFailed:
        return None
    if root is None or root.tag.rpartition("}")[2] == wanted:
        return root
    return next(root.iter(f"{{*}}{wanted}"), None)


def _words(node: Any) -> str:
    return clean(" ".join(part.strip() for part in node.itertext() if part.strip()))


def _values(data: Any | None) -> dict[str, list[str]]:
    """What was filled in, by the name of the field."""
    values: dict[str, list[str]] = {}
    for node in data.iter() if data is not None else ():
        if isinstance(node.tag, str) and not len(node) and (text := clean(node.text or "")):
            values.setdefault(node.tag.rpartition("}")[2], []).append(text)
    return values


def _asked(template: Any, values: dict[str, list[str]]) -> Iterator[Element]:
    """Texts and fields in the order of the description; each value stands with its caption."""
    for node in template.iter("{*}draw", "{*}field"):
        if node.get("presence") in ("hidden", "invisible"):
            values.pop(str(node.get("name")), None)
            continue
        if node.tag.endswith("}draw"):
            value = node.find("{*}value")
            if value is not None and (text := _words(value)):
                yield Element(Category.NARRATIVE_TEXT, text)
            continue
        caption = node.find("{*}caption")
        label = _words(caption) if caption is not None else ""
        name = str(node.get("name") or "")
        filled = ", ".join(values.pop(name, []))
        if label or filled:
            yield Element(Category.FORM_KEYS_VALUES, f"{label or name}: {filled}".rstrip())


def described(document: PdfDocument) -> list[Element]:
    """Elements of a form that is described, without boxes; none when there is nothing in it."""
    whole = _packet(document, "")
    template = _root(_packet(document, "template") or whole, "template")
    values = _values(_root(_packet(document, "datasets") or whole, "data"))
    elements = (
        [element for _, element in zip(range(_MAX_ELEMENTS), _asked(template, values), strict=False)]
        if (template is not None)
        else []
    )
    left = [Element(Category.FORM_KEYS_VALUES, f"{name}: {', '.join(texts)}") for name, texts in values.items()]
    return [*elements, *left][:_MAX_ELEMENTS]
