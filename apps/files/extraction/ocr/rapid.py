"""Recognition with rapidocr's packaged models: no system package, CJK and Latin; slower than tesseract."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image
from rapidocr import RapidOCR

from apps.files.extraction.layout import central
from apps.files.extraction.ocr.words import Word, page_of
from apps.files.extraction.render import Drawn
from apps.files.extraction.types import Box, PageRecord

_LONGEST = 1_600
# Lines are found on a smaller picture, which takes a quarter of the time and the memory, and even 6 points are found;
# they are read from the large one.
_LONGEST_TO_FIND_LINES = 960
# rapidocr enlarges whatever is less high or wide than 30 pixels: a strip of one pixel, thirty times.
_LEAST_SIDE = 32
_PARAMETERS = {
    "Global.log_level": "critical",
    "Global.max_side_len": _LONGEST,
    "Det.limit_type": "max",
    "Det.limit_side_len": _LONGEST_TO_FIND_LINES,
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}


def _box(corners: Any, width: int, height: int) -> Box:
    xs = [min(max(float(x) / width, 0.0), 1.0) for x, _ in corners]
    ys = [min(max(float(y) / height, 0.0), 1.0) for _, y in corners]
    return min(xs), min(ys), max(xs), max(ys)


def _in_paragraphs(lines: list[tuple[Box, str, float]]) -> list[Word]:
    """Each line as one word, numbered by paragraph: a new one begins where the step down is unusually large."""
    lines.sort(key=lambda line: (round((line[0][1] + line[0][3]) * 50), line[0][0]))
    if not lines:
        return []
    height = central([box[3] - box[1] for box, _, _ in lines])
    words: list[Word] = []
    paragraph, bottom = 0, lines[0][0][3]
    for index, (box, text, score) in enumerate(lines):
        if box[1] - bottom > 0.7 * height:
            paragraph += 1
        bottom = box[3]
        words.append(Word(text, box, score, (paragraph, 0, index)))
    return words


def _padded(picture: Image.Image) -> Image.Image:
    """The picture at the top left of one whose sides are long enough."""
    size = (max(picture.width, _LEAST_SIDE), max(picture.height, _LEAST_SIDE))
    if size == picture.size:
        return picture
    made = Image.new("RGB", size, picture.getpixel((0, 0)))
    made.paste(picture)
    return made


def recognise(drawn: Drawn, number: int) -> PageRecord:
    picture = drawn.picture
    if max(picture.size) > _LONGEST:
        picture = picture.copy()
        picture.thumbnail((_LONGEST, _LONGEST), Image.Resampling.LANCZOS)
    output: Any = RapidOCR(params=_PARAMETERS)(np.asarray(_padded(picture.convert("RGB"))))
    found = zip(output.boxes, output.txts, output.scores, strict=True) if output.txts else ()
    lines = [
        (_box(corners, picture.width, picture.height), str(text), min(max(float(score), 0.0), 1.0))
        for corners, text, score in found
    ]
    size = (picture.width, picture.height)
    return page_of(_in_paragraphs(lines), number=number, picture=size, page=(drawn.width, drawn.height), turn=0)
