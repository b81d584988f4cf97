"""The child's job of recognition: draw the page, then become tesseract, or run rapidocr in place.

The child replaces itself by tesseract rather than starting it: in the sandbox no process may be started, and
what is exec'ed stays in the sandbox.
"""

from __future__ import annotations

import os
from itertools import accumulate
from pathlib import Path

from PIL import Image

from apps.files.extraction.answer import Job, page_message, say
from apps.files.extraction.ocr.rules import without_rules
from apps.files.extraction.ocr.straight import levelled, slope, without_shadow
from apps.files.extraction.render import Drawn, draw

DPI = 200
_LONGEST = 3_600
_SMALL = 1_000
_CONTRAST = 48  # of 256 shades
_QUARTER_TURNS = {90: Image.Transpose.ROTATE_270, 180: Image.Transpose.ROTATE_180, 270: Image.Transpose.ROTATE_90}


def _drawn(job: Job) -> Drawn:
    drawn = draw(job, grey=True, scale=DPI / 72, longest=_LONGEST)
    picture = drawn.picture
    if job["kind"] == "image" and max(picture.size) < _SMALL:  # letters of a few pixels are not recognised
        picture = picture.resize((picture.width * 2, picture.height * 2), Image.Resampling.BICUBIC)
    turn = int(job["turn"])
    if turn in _QUARTER_TURNS:
        picture = picture.transpose(_QUARTER_TURNS[turn])
    return Drawn(picture, drawn.width, drawn.height)


def _ink(picture: Image.Image) -> float:
    """Share of pixels that are clearly darker or lighter than most."""
    counts = picture.histogram()
    total = sum(counts)
    ground = next(shade for shade, passed in enumerate(accumulate(counts)) if 2 * passed >= total)
    near = sum(counts[max(0, ground - _CONTRAST) : ground + _CONTRAST + 1])
    return 1 - near / total


def _become_tesseract(job: Job, drawn: Drawn) -> None:
    path = Path(str(job["scratch"])) / "page.pgm"
    picture = without_shadow(drawn.picture)
    skew = 0.0 if job["orientation"] else slope(picture)
    without_rules(levelled(picture, skew)).save(path, "PPM")
    say(
        {
            "picture": {
                "width": drawn.picture.width,
                "height": drawn.picture.height,
                "page_width": drawn.width,
                "page_height": drawn.height,
                "ink": _ink(drawn.picture),
                "skew": skew,
            }
        }
    )
    os.close(int(job["source"]))
    arguments = ["tesseract", str(path), "stdout", "--dpi", str(DPI), "--psm", str(int(job["mode"]))]
    if not job["orientation"]:
        arguments += ["-l", str(job["languages"]), "tsv"]
    os.execv(str(job["tesseract"]), arguments)


def work(job: Job) -> None:
    if job.get("tesseract"):
        _become_tesseract(job, _drawn(job))
    else:
        from apps.files.extraction.ocr.rapid import recognise

        say(page_message(recognise(_drawn(job), int(job["page"]))))
        say({"end": True})
