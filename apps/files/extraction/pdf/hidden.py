"""What a page holds but does not show: text on layers that are off, in the colour of the paper, drawn without ink.

Text without ink over a picture is another program's recognition of that picture, and is kept: something is seen there.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import pypdfium2_raw as pdfium

from apps.files.extraction.pdf.document import Page
from apps.files.extraction.pdf.layers import text_of

if TYPE_CHECKING:
    from PIL import Image

_LOOKED_AT = 4_000
_MAX_DEPTH = 4
_LONGEST_NAME = 512
_LAYER = "OC\0".encode("utf-16-le")
_PAPER = 250  # of 255: as white as paper
_MAX_PIXELS = 4_000_000
_WITHOUT_INK = pdfium.FPDF_TEXTRENDERMODE_INVISIBLE
Rectangle = tuple[float, float, float, float]


def _layer(shape: object) -> str:
    """Name of the layer that a piece of a page belongs to."""
    for index in range(max(0, int(pdfium.FPDFPageObj_CountMarks(shape)))):
        mark = pdfium.FPDFPageObj_GetMark(shape, index)
        kind, size = (ctypes.c_ushort * 3)(), ctypes.c_ulong()
        if not pdfium.FPDFPageObjMark_GetName(mark, kind, ctypes.sizeof(kind), size) or bytes(kind) != _LAYER:
            continue
        name = (ctypes.c_ubyte * _LONGEST_NAME)()
        if pdfium.FPDFPageObjMark_GetParamBlobValue(mark, b"Name", name, len(name), size):
            return text_of(bytes(name)[: size.value])
    return ""


def remove_layers(page: Page, off: frozenset[str]) -> None:
    """Take what stands on the layers `off` from the page, so that its text is not read."""
    shapes = [
        pdfium.FPDFPage_GetObject(page.handle, index)
        for index in range(min(int(pdfium.FPDFPage_CountObjects(page.handle)), _LOOKED_AT))
    ]
    for shape in shapes:
        if _layer(shape) in off:
            pdfium.FPDFPage_RemoveObject(page.handle, shape)
        elif int(pdfium.FPDFPageObj_GetType(shape)) == pdfium.FPDF_PAGEOBJ_FORM:
            _remove_inside(shape, off, 1)


def _remove_inside(form: object, off: frozenset[str], depth: int) -> None:
    count = min(int(pdfium.FPDFFormObj_CountObjects(form)), _LOOKED_AT)
    for shape in [pdfium.FPDFFormObj_GetObject(form, index) for index in range(count)]:
        if _layer(shape) in off:
            pdfium.FPDFFormObj_RemoveObject(form, shape)
        elif depth < _MAX_DEPTH and int(pdfium.FPDFPageObj_GetType(shape)) == pdfium.FPDF_PAGEOBJ_FORM:
            _remove_inside(shape, off, depth + 1)


class Visibility:
    """Whether lines of one page can be seen. The page is drawn when a line is first in doubt."""

    def __init__(self, page: Page, text_page: object) -> None:
        self._page, self._text = page, text_page
        self._drawn: Image.Image | None = None
        self._red, self._green, self._blue, self._alpha = (ctypes.c_uint() for _ in range(4))

    def hides(self, index: int, rectangle: Rectangle) -> bool:
        """Whether nobody sees the line whose character `index` is; `rectangle` is left, bottom, right, top."""
        mode = int(pdfium.FPDFTextObj_GetTextRenderMode(pdfium.FPDFText_GetTextObject(self._text, index)))
        doubtful = mode == _WITHOUT_INK or (mode == pdfium.FPDF_TEXTRENDERMODE_FILL and self._white(index))
        return doubtful and self._blank(rectangle)

    def _white(self, index: int) -> bool:
        if not pdfium.FPDFText_GetFillColor(self._text, index, self._red, self._green, self._blue, self._alpha):
            return False
        return min(self._red.value, self._green.value, self._blue.value) >= _PAPER

    def _blank(self, rectangle: Rectangle) -> bool:
        """Whether there is nothing but paper where the line stands."""
        if self._drawn is None:
            from apps.files.extraction.pdf.render import pixels, scale_for  # late: few pages need to be drawn

            self._drawn = pixels(self._page, scale=scale_for(self._page, scale=1.0, max_pixels=_MAX_PIXELS), grey=True)
        x0, y0, x1, y1 = self._page.fractions(*rectangle)
        wide, tall = self._drawn.size
        area = (int(x0 * wide), int(y0 * tall), max(int(x0 * wide) + 1, round(x1 * wide)), round(y1 * tall) + 1)
        darkest = self._drawn.crop(area).getextrema()[0]
        return isinstance(darkest, int | float) and darkest >= _PAPER
