"""The parent's side of recognition: which engine, which language, which way up, and whether a second opinion is worth
its time."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from apps.files.extraction.child import Child, ChildLost
from apps.files.extraction.language import main_language
from apps.files.extraction.ocr import languages, tsv
from apps.files.extraction.ocr.words import page_of
from apps.files.extraction.process import opened, receive
from apps.files.extraction.types import ExtractionFailed, Kind, Limits, PageRecord, Reason

OCR_S = 90.0
PAGE_S = 100.0  # of all engines and directions together
_MAX_TSV = 16 << 20
_MAX_PIXELS = 25_000_000
_AUTO, _ORIENTATION_ONLY = 3, 0
_LIKELY_UPRIGHT = 0.7
_GOOD_ENOUGH = 0.5
_BLANK = 0.0002  # a line of small print covers ten times that
_RAPID_MEMORY = 3 << 30  # address space, of which it touches a quarter
Packs = tuple[str, ...]
_PLACES = os.pathsep.join((os.defpath, "/usr/local/bin", "/opt/homebrew/bin"))


@lru_cache(maxsize=1)
def tesseract() -> str | None:
    """Where tesseract is, or None."""
    return shutil.which("tesseract", path=_PLACES)


@dataclass(frozen=True, slots=True)
class _Task:
    source: int
    kind: Kind
    number: int
    limits: Limits
    program: str
    ends: float

    def _left(self) -> float:
        """Seconds that the next answer may take. Raises ChildLost when the page's time is up."""
        left = min(OCR_S, self.ends - time.monotonic())
        if left <= 0:
            raise ChildLost(Reason.TIMED_OUT)
        return left

    def _job(self, **extra: Any) -> dict[str, Any]:
        return {
            "op": "ocr",
            "kind": self.kind,
            "page": self.number,
            "max_pixels": _MAX_PIXELS if self.kind == "pdf" else self.limits.max_pixels,
            **extra,
        }

    def _run(self, *, turn: int, mode: int, packs: Packs = ()) -> tuple[bytes, Any]:
        job = self._job(
            tesseract=self.program,
            turn=turn,
            mode=mode,
            orientation=mode == _ORIENTATION_ONLY,
            languages="+".join(packs),
            may_exec=True,
        )
        os.lseek(self.source, 0, os.SEEK_SET)  # the offset is shared with the children before
        with Child(job, self.limits, source=self.source) as child:
            picture = receive(child, self._left()).picture
            output = child.read_rest(self._left(), _MAX_TSV)
            if picture is None:
                raise ChildLost(Reason.CRASHED)
            # Tesseract fails on a picture in which it cannot make out any direction.
            if not child.succeeded() and mode != _ORIENTATION_ONLY:
                raise ChildLost(Reason.OCR_FAILED)
        return output, picture

    def read(self, turn: int, packs: Packs) -> tuple[PageRecord, float]:
        """The page, and how much there is to see on it."""
        output, picture = self._run(turn=turn, mode=_AUTO, packs=packs)
        words = tsv.words(output, width=picture.width, height=picture.height)
        page = page_of(
            words,
            number=self.number,
            picture=(picture.width, picture.height),
            page=(picture.page_width, picture.page_height),
            turn=turn,
            skew=picture.skew,
        )
        return page, picture.ink

    def orientation(self) -> tuple[int, Packs]:
        """By how many degrees clockwise to turn it, and packs for its script; none where that says nothing."""
        output, _ = self._run(turn=0, mode=_ORIENTATION_ONLY)
        return tsv.turn(output), languages.of_script(self.program, tsv.script(output))

    def second_opinion(self) -> PageRecord:
        os.lseek(self.source, 0, os.SEEK_SET)
        limits = replace(self.limits, memory_bytes=max(self.limits.memory_bytes, _RAPID_MEMORY))
        with Child(self._job(turn=0), limits, source=self.source) as child:
            page = receive(child, self._left()).page
            if page is None or page.number != self.number or page.source != "ocr":
                raise ChildLost(Reason.CRASHED)
            return page


def _worth(page: PageRecord) -> float:
    return (page.confidence or 0.0) * len(page.text)


def _recognised(task: _Task, language: str | None) -> PageRecord:
    if not task.program:
        return task.second_opinion()
    turn, known = 0, languages.of_language(task.program, language) or task.limits.ocr_languages
    page, ink = task.read(turn, known)
    if ink < _BLANK and not page.text:
        return page
    try:
        if (page.confidence or 0.0) < _LIKELY_UPRIGHT:
            turn, fitting = task.orientation()
            if turn or not set(fitting) <= set(known):
                known = fitting or known
                page = max(page, task.read(turn, known)[0], key=_worth)
        told = main_language(element.as_json() for element in page.elements)
        if not set(spoken := languages.of_language(task.program, told)) <= set(known):
            page = max(task.read(turn, spoken)[0], page, key=_worth)
        if (page.confidence or 0.0) >= _GOOD_ENOUGH:
            return page
        return max(page, task.second_opinion(), key=_worth)
    except (ChildLost, ExtractionFailed):
        return page


def recognise(path: str | Path, kind: Kind, number: int, limits: Limits, *, language: str | None = None) -> PageRecord:
    """The text of page `number`, read from its picture. No text at all is an answer too. Raises ExtractionFailed.

    It is read in `language` (ISO 639-1) first, else in English, and again in the one that it turns out to be in.
    """
    with opened(path) as source:
        try:
            ends = time.monotonic() + PAGE_S
            return _recognised(_Task(source, kind, number, limits, tesseract() or "", ends), language)
        except ChildLost as lost:
            reason = Reason.TIMED_OUT if lost.reason is Reason.TIMED_OUT else Reason.OCR_FAILED
            raise ExtractionFailed(reason) from lost
