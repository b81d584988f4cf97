"""A page of a PDF as pixels."""

from __future__ import annotations

import ctypes
import math

import pypdfium2_raw as pdfium
from PIL import Image

from apps.files.extraction.pdf.document import Page

LONGEST = 12_000
_WHITE = 0xFFFFFFFF


def scale_for(page: Page, *, scale: float, max_pixels: int) -> float:
    """`scale` (pixels a point), or what keeps the picture within its bounds."""
    longest = max(page.width, page.height)
    return min(scale, LONGEST / longest, math.sqrt(max_pixels / (page.width * page.height)))


def pixels(page: Page, *, scale: float, grey: bool) -> Image.Image:
    """The page, annotations included, on white. Raises MemoryError."""
    width, height = max(1, round(page.width * scale)), max(1, round(page.height * scale))
    kind = pdfium.FPDFBitmap_Gray if grey else pdfium.FPDFBitmap_BGR
    bitmap = pdfium.FPDFBitmap_CreateEx(width, height, kind, None, 0)
    if not bitmap:
        raise MemoryError
    try:
        pdfium.FPDFBitmap_FillRect(bitmap, 0, 0, width, height, _WHITE)
        flags = pdfium.FPDF_ANNOT | (pdfium.FPDF_GRAYSCALE if grey else 0)
        pdfium.FPDF_RenderPageBitmap(bitmap, page.handle, 0, 0, width, height, 0, flags)
        stride = int(pdfium.FPDFBitmap_GetStride(bitmap))
        data = ctypes.string_at(pdfium.FPDFBitmap_GetBuffer(bitmap), stride * height)
    finally:
        pdfium.FPDFBitmap_Destroy(bitmap)
    mode, order = ("L", "L") if grey else ("RGB", "BGR")
    return Image.frombuffer(mode, (width, height), data, "raw", order, stride, 1)
