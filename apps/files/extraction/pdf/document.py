"""Opening a PDF and its pages. The interface is called directly: the Python helpers cost as much to import as a
short document costs to read."""

from __future__ import annotations

import ctypes
import math
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

import pypdfium2_raw as pdfium

from apps.files.extraction.pdf.layers import names_off
from apps.files.extraction.pdf.repair import ended
from apps.files.extraction.types import HEADING_MAX_CHARS, Box, ExtractionFailed, Reason

_FAILURES = {
    pdfium.FPDF_ERR_FORMAT: Reason.DAMAGED,
    pdfium.FPDF_ERR_FILE: Reason.DAMAGED,
    pdfium.FPDF_ERR_PASSWORD: Reason.ENCRYPTED,
    pdfium.FPDF_ERR_SECURITY: Reason.ENCRYPTED,
}
_GRID = 1_000_000  # PageToDevice answers in whole pixels of a page this wide and high
_REACH = 1_000.0


class Page:
    """An open page with the map from its own coordinates to fractions of what is displayed."""

    def __init__(self, handle: object) -> None:
        self.handle = handle
        self.width = float(pdfium.FPDF_GetPageWidthF(handle))
        self.height = float(pdfium.FPDF_GetPageHeightF(handle))
        if not (math.isfinite(self.width) and math.isfinite(self.height) and 0 < self.width <= 1e6 >= self.height > 0):
            raise ValueError("page without a usable size")
        self.quarter_turns = int(pdfium.FPDFPage_GetRotation(handle)) % 4
        origin, right, up = self._device(0.0, 0.0), self._device(_REACH, 0.0), self._device(0.0, _REACH)
        self._origin = origin
        self._x = ((right[0] - origin[0]) / _REACH, (right[1] - origin[1]) / _REACH)
        self._y = ((up[0] - origin[0]) / _REACH, (up[1] - origin[1]) / _REACH)

    def _device(self, x: float, y: float) -> tuple[float, float]:
        dx, dy = ctypes.c_int(), ctypes.c_int()
        pdfium.FPDF_PageToDevice(self.handle, 0, 0, _GRID, _GRID, 0, x, y, dx, dy)
        return dx.value / _GRID, dy.value / _GRID

    def fractions(self, left: float, bottom: float, right: float, top: float) -> Box:
        """The displayed box of a rectangle in page coordinates, clipped to the page."""
        (ox, oy), (ax, ay), (bx, by) = self._origin, self._x, self._y
        x0, x1 = ox + ax * left + bx * bottom, ox + ax * right + bx * top
        y0, y1 = oy + ay * left + by * bottom, oy + ay * right + by * top
        if x0 > x1:
            x0, x1 = x1, x0
        if y0 > y1:
            y0, y1 = y1, y0
        return (
            round(min(max(x0, 0.0), 1.0), 5),
            round(min(max(y0, 0.0), 1.0), 5),
            round(min(max(x1, 0.0), 1.0), 5),
            round(min(max(y1, 0.0), 1.0), 5),
        )


class PdfDocument:
    """A PDF read from a descriptor. Raises ExtractionFailed when it cannot be opened.

    `maps_characters`: whether the file can hold maps from its glyphs to characters; those may be in packed objects.
    `layers_off`: names of the layers that are not shown. `breaks_off`: whether the end of the file is missing.
    """

    def __init__(self, descriptor: int, size: int, password: str | None = None) -> None:
        if size == 0:
            raise ExtractionFailed(Reason.EMPTY)
        pdfium.FPDF_InitLibrary()
        # Copy-on-write, because ctypes takes writable buffers only; nothing is ever copied.
        self._map = mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY)
        self._buffer = (ctypes.c_char * size).from_buffer(self._map)
        secret = password.encode() if password is not None else None
        self.handle = pdfium.FPDF_LoadMemDocument64(self._buffer, size, secret)
        self.breaks_off = not self.handle and pdfium.FPDF_GetLastError() == pdfium.FPDF_ERR_FORMAT
        if self.breaks_off:
            self._open_repaired()
        if not self.handle:
            raise ExtractionFailed(_FAILURES.get(pdfium.FPDF_GetLastError(), Reason.DAMAGED))
        self._form_info = pdfium.FPDF_FORMFILLINFO(version=2)
        self.form = pdfium.FPDFDOC_InitFormFillEnvironment(self.handle, self._form_info)
        self.maps_characters = self._map.find(b"/ToUnicode") >= 0 or self._map.find(b"/ObjStm") >= 0
        self.layers_off = names_off(self._map)
        self.page_count = int(pdfium.FPDF_GetPageCount(self.handle))
        if self.page_count < 1:
            raise ExtractionFailed(Reason.DAMAGED)

    def _open_repaired(self) -> None:
        for data in ended(self._map):
            self._whole = data  # PDFium reads from it while the document is open
            self.handle = pdfium.FPDF_LoadMemDocument64(data, len(data), None)
            if self.handle:
                return

    def __enter__(self) -> PdfDocument:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.form:
            pdfium.FPDFDOC_ExitFormFillEnvironment(self.form)
        pdfium.FPDF_CloseDocument(self.handle)

    @property
    def title(self) -> str:
        buffer = ctypes.create_string_buffer(4 * HEADING_MAX_CHARS)
        length = pdfium.FPDF_GetMetaText(self.handle, b"Title", buffer, len(buffer))
        if not 2 < length <= len(buffer):
            return ""
        return buffer.raw[: length - 2].decode("utf-16-le", "ignore").strip()[:HEADING_MAX_CHARS]

    @contextmanager
    def page(self, number: int) -> Iterator[Page]:
        """Page `number`, from 1. Raises ValueError when it cannot be opened."""
        handle = pdfium.FPDF_LoadPage(self.handle, number - 1)
        if not handle:
            raise ValueError("page cannot be opened")
        try:
            yield Page(handle)
        finally:
            pdfium.FPDF_ClosePage(handle)
