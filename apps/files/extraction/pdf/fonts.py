"""Whether the characters of a page mean what they say.

A font that was cut down to the glyphs of a document and has neither a map of its own nor one beside it shows
anything under the code of a Latin letter. Such text reads as gibberish, though nothing in it looks wrong.
"""

from __future__ import annotations

import ctypes
import struct

import pypdfium2_raw as pdfium

from apps.files.extraction.pdf.document import Page

_LOOKED_AT = 200
_SFNT = (b"\0\1\0\0", b"true")
_HEAD = 12 + 16 * 64  # as many tables as fonts have


def _has_no_map(font: object) -> bool:
    """Whether it is an embedded TrueType font without a table of characters."""
    if pdfium.FPDFFont_GetIsEmbedded(font) != 1:
        return False
    size = ctypes.c_size_t()
    if not pdfium.FPDFFont_GetFontData(font, None, 0, size) or not size.value:
        return False
    buffer = (ctypes.c_uint8 * size.value)()
    pdfium.FPDFFont_GetFontData(font, buffer, size.value, size)
    head = bytes(buffer[:_HEAD])
    if head[:4] not in _SFNT:
        return False
    tables = struct.unpack_from(">H", head, 4)[0]
    return b"cmap" not in [head[12 + 16 * at : 16 + 16 * at] for at in range(tables)]


def unmapped_share(page: Page) -> float:
    """The share of the page's texts that are set in such fonts. Ask only where the file holds no maps."""
    known: dict[int, bool] = {}
    texts = unmapped = 0
    for index in range(min(int(pdfium.FPDFPage_CountObjects(page.handle)), _LOOKED_AT)):
        shape = pdfium.FPDFPage_GetObject(page.handle, index)
        if int(pdfium.FPDFPageObj_GetType(shape)) == pdfium.FPDF_PAGEOBJ_TEXT:
            font = pdfium.FPDFTextObj_GetFont(shape)
            key = ctypes.cast(font, ctypes.c_void_p).value or 0
            if key not in known:
                known[key] = _has_no_map(font)
            texts, unmapped = texts + 1, unmapped + known[key]
    return unmapped / texts if texts else 0.0
