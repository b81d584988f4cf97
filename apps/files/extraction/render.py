"""The child's job of drawing one page, and the pixels that recognition works on."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass

from PIL import Image

from apps.files.extraction import image
from apps.files.extraction.answer import Job, say, say_raw
from apps.files.extraction.pdf.document import PdfDocument
from apps.files.extraction.pdf.render import pixels, scale_for
from apps.files.extraction.types import ExtractionFailed, Reason

_FAST = 3  # of zlib's nine levels


@dataclass(frozen=True, slots=True)
class Drawn:
    """A picture of a page, and the page's own width and height in its unit."""

    picture: Image.Image
    width: float
    height: float


def _pdf(job: Job, *, scale: float | None, grey: bool) -> Drawn:
    source = int(job["source"])
    with PdfDocument(source, os.fstat(source).st_size) as document:
        try:
            with document.page(int(job["page"])) as page:
                wanted = scale if scale is not None else int(job["width"]) / page.width
                fitting = scale_for(page, scale=wanted, max_pixels=int(job["max_pixels"]))
                return Drawn(pixels(page, scale=fitting, grey=grey), page.width, page.height)
        except ValueError as error:
            raise ExtractionFailed(Reason.DAMAGED) from error


def draw(job: Job, *, grey: bool, scale: float | None = None, longest: int = 12_000) -> Drawn:
    """Page `job["page"]` at `scale` pixels a point, or `job["width"]` pixels wide; pictures only ever shrink."""
    if job["kind"] == "pdf":
        return _pdf(job, scale=scale, grey=grey)
    if job["kind"] != "image":
        raise ExtractionFailed(Reason.UNSUPPORTED)
    source, max_pixels = int(job["source"]), int(job["max_pixels"])
    picture, width, height = image.pixels(source, int(job["page"]), max_pixels=max_pixels, longest=longest, grey=grey)
    if scale is None and picture.width > int(job["width"]):
        ratio = int(job["width"]) / picture.width
        picture = picture.resize((int(job["width"]), max(1, round(picture.height * ratio))), reducing_gap=2.0)
    return Drawn(picture, float(width), float(height))


def work(job: Job) -> None:
    drawn = draw(job, grey=False)
    buffer = io.BytesIO()
    drawn.picture.save(buffer, "PNG", compress_level=_FAST)
    data = buffer.getvalue()
    say({"blob": {"size": len(data), "width": drawn.picture.width, "height": drawn.picture.height}})
    say_raw(data)
