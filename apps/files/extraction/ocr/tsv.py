"""Tesseract's output, read as something that may have been written by anyone."""

from __future__ import annotations

import re

from apps.files.extraction.ocr.words import MAX_WORDS, Word

_WORD_LEVEL, _COLUMNS = "5", 12
_ROTATE = re.compile(rb"^Rotate: (90|180|270)\s*$", re.MULTILINE)
_SURE = re.compile(rb"^Orientation confidence: (\d{1,4}(?:\.\d+)?)\s*$", re.MULTILINE)
_SCRIPT = re.compile(rb"^Script: ([A-Za-z]{2,20})\s*$", re.MULTILINE)
_MIN_ORIENTATION_CONFIDENCE = 2.0


def words(tsv: bytes, *, width: int, height: int) -> list[Word]:
    """The words of a TSV; lines that do not hold together are passed over."""
    found: list[Word] = []
    for row in tsv.decode("utf-8", "replace").split("\n"):
        columns = row.rstrip("\r").split("\t")
        if len(columns) != _COLUMNS or columns[0] != _WORD_LEVEL or not columns[11].strip():
            continue
        try:
            block, paragraph, line = int(columns[2]), int(columns[3]), int(columns[4])
            left, top, wide, tall = (int(value) for value in columns[6:10])
            confidence = float(columns[10]) / 100
        except ValueError:
            continue
        if not (0 <= left <= left + wide <= width and 0 <= top <= top + tall <= height and 0 <= confidence <= 1):
            continue
        box = (left / width, top / height, (left + wide) / width, (top + tall) / height)
        found.append(Word(columns[11].strip()[:200], box, confidence, (block, paragraph, line)))
        if len(found) >= MAX_WORDS:
            break
    return found


def turn(report: bytes) -> int:
    """By how many degrees clockwise a picture must be turned to stand upright; 0 when that is not clear."""
    rotate, sure = _ROTATE.search(report), _SURE.search(report)
    if rotate is None or sure is None or float(sure.group(1)) < _MIN_ORIENTATION_CONFIDENCE:
        return 0
    return int(rotate.group(1))


def script(report: bytes) -> str:
    """Tesseract's name for the script; nothing when it could not tell."""
    found = _SCRIPT.search(report)
    return found.group(1).decode() if found else ""
