"""The parent's side: `run`, `ocr_page`, `render_page`. Decides what a lost child means for the page it was on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.files.extraction.child import COMMAND, Child, ChildLost
from apps.files.extraction.sandbox import NETWORKS, SandboxReport
from apps.files.extraction.types import (
    PICTURES_MAX,
    Document,
    ExtractionFailed,
    Kind,
    Limits,
    PageRecord,
    Reason,
)
from apps.files.types import DRAWN

if TYPE_CHECKING:
    from apps.files.extraction.wire import Kept, Message

OPEN_S = 120.0
RENDER_S = 30.0
UNLOCK_S = 30.0
IMAGE_MAX_BYTES = 32 << 20
IMAGE_MAX_WIDTH = 3_000
_PNG = b"\x89PNG\r\n\x1a\n"

OnPage = Callable[[PageRecord], None]
OnStart = Callable[[Document], None]
OnPicture = Callable[[str, bytes], None]


def receive(child: Child, wait_s: float) -> Message:
    """The child's next message; garbage ends it. Raises ChildLost, and ExtractionFailed when it says so itself."""
    # Imported late: the child imports this package too, must start fast, and validates nothing.
    from apps.files.extraction.wire import Garbage, decode

    try:
        message = decode(child.read_line(wait_s))
    except Garbage:
        raise ChildLost(Reason.CRASHED) from None
    if message.failed is not None:
        raise ExtractionFailed(message.failed)
    return message


@contextmanager
def opened(path: str | Path) -> Iterator[int]:
    """A read-only descriptor of the input, the only file of ours that a child sees."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@dataclass(slots=True)
class _Reading:
    """How far the reading of a document has come, over as many children as that takes."""

    source: int
    kind: Kind
    limits: Limits
    on_page: OnPage
    on_start: OnStart | None
    on_picture: OnPicture | None
    next: int
    command: Sequence[str]
    document: Document | None = None
    at: int = 0
    attached: bool = True
    pictured: bool = True
    headings: list[list[Any]] = field(default_factory=list)
    poisoned: dict[int, Reason] = field(default_factory=dict)
    pictures: int = 0
    restarts: int = 0
    timeouts: int = 0
    spent_s: float = 0.0

    @property
    def done(self) -> bool:
        return self.document is not None and self.next > self.document.page_count

    def _job(self) -> dict[str, Any]:
        return {
            "op": "read",
            "kind": self.kind,
            "first": self.next,
            "headings": self.headings,
            "skip": sorted(self.poisoned),
            "attached": self.attached,
            "pictured": self.pictured,
            "max_pages": self.limits.max_pages,
            "max_pixels": self.limits.max_pixels,
            "unpacked_bytes": self.limits.unpacked_bytes,
        }

    def _accept_document(self, document: Document) -> None:
        if document.page_count > self.limits.max_pages:
            raise ExtractionFailed(Reason.TOO_MANY_PAGES)
        if self.document is None:
            self.document = document
            if self.on_start:
                self.on_start(document)
        elif document.page_count != self.document.page_count:
            raise ChildLost(Reason.CRASHED)

    def _accept_page(self, page: PageRecord) -> None:
        if self.document is None or page.number != self.next or page.number > self.document.page_count:
            raise ChildLost(Reason.CRASHED)
        if page.number in self.poisoned:
            page = replace(page, error=self.poisoned[page.number])
        self.next += 1
        self.headings = [[heading.level, heading.text] for heading in page.headings]
        self.on_page(page)

    def _accept_picture(self, child: Child, kept: Kept) -> None:
        data = child.read_exactly(self.limits.page_s, kept.size)
        self.pictures += 1
        if self.pictures > PICTURES_MAX:
            raise ChildLost(Reason.CRASHED)
        if self.on_picture:
            self.on_picture(kept.key, data)

    def read_on(self) -> None:
        """Let one child read from `next` on. Raises ChildLost when it does not reach the end."""
        os.lseek(self.source, 0, os.SEEK_SET)  # the offset is shared with the children before
        self.pictures = 0
        limits = replace(self.limits, wall_s=self.limits.wall_s - self.spent_s)
        with Child(self._job(), limits, source=self.source, command=self.command) as child:
            try:
                self._listen(child)
            finally:
                self.spent_s += child.waited_s

    def _listen(self, child: Child) -> None:
        while True:
            message = receive(child, OPEN_S if self.document is None else self.limits.page_s)
            if message.document is not None:
                self._accept_document(message.document)
            elif message.page is not None:
                self._accept_page(message.page)
            elif message.kept is not None:
                self._accept_picture(child, message.kept)
            elif message.at is not None:
                self.at = message.at
            elif message.end and self.done:
                return
            else:
                raise ChildLost(Reason.CRASHED)

    def leave_out(self, reason: Reason) -> bool:
        """Give up what the child may have been lost on before it knew the document; False when that is the document."""
        if self.at and self.attached:
            self.attached = False
            return True
        if self.kind not in DRAWN and self.pictured and reason is not Reason.TIMED_OUT:
            self.pictured = False
            return True
        return False

    def blame(self, reason: Reason) -> None:
        """Note the page that a child was lost on, or give all the rest up when that happens too often."""
        # The page that was being read is one beyond the last reported: that one waits for it.
        page = max(self.at, self.next)
        self.restarts += 1
        self.timeouts += reason is Reason.TIMED_OUT
        spent = self.restarts > self.limits.max_restarts or self.timeouts > self.limits.max_timeouts
        if spent or page in self.poisoned:
            self.give_up(reason)
        else:
            self.poisoned[page] = reason

    def give_up(self, reason: Reason) -> None:
        assert self.document is not None
        while not self.done:
            self.next += 1
            self.on_page(PageRecord(number=self.next - 1, error=self.poisoned.get(self.next - 1, reason)))


def run(
    path: str | Path,
    kind: Kind,
    *,
    limits: Limits | None = None,
    on_page: OnPage,
    on_start: OnStart | None = None,
    on_picture: OnPicture | None = None,
    first: int = 1,
    command: Sequence[str] = COMMAND,
) -> Document:
    """Read a file page by page: `on_start` once the number of pages is known, then `on_page` for each from `first`, and
    before it `on_picture` with key and bytes of each picture that it is the first to refer to.

    A page that kills its reader, or takes longer than `limits.page_s`, is reported with its `error` and a new
    child goes on behind it. Raises ExtractionFailed when the file as a whole cannot be read. What `on_page`
    raises ends the reading. `command` starts a child.
    """
    limits = limits or Limits()
    with opened(path) as source:
        reading = _Reading(source, kind, limits, on_page, on_start, on_picture, next=first, command=command)
        while not reading.done:
            reading.at = 0
            try:
                reading.read_on()
            except ChildLost as lost:
                if reading.document is None and reading.leave_out(lost.reason):
                    continue
                if reading.document is None or kind != "pdf":
                    raise ExtractionFailed(lost.reason) from lost
                reading.blame(lost.reason)
        assert reading.document is not None
        return reading.document


def render_page(path: str | Path, kind: Kind, number: int, width: int, *, limits: Limits | None = None) -> bytes:
    """A PNG of page `number`, `width` pixels wide (fewer for a page that is very long). Raises ExtractionFailed."""
    limits = limits or Limits()
    job = {
        "op": "render",
        "kind": kind,
        "page": number,
        "width": max(16, min(width, IMAGE_MAX_WIDTH)),
        "max_pixels": limits.max_pixels,
    }
    with opened(path) as source, Child(job, limits, source=source) as child:
        try:
            blob = receive(child, RENDER_S).blob
            data = child.read_rest(RENDER_S, IMAGE_MAX_BYTES)
        except ChildLost as lost:
            raise ExtractionFailed(lost.reason) from lost
    if blob is None or blob.size != len(data) or not data.startswith(_PNG):
        raise ExtractionFailed(Reason.CRASHED)
    return data


def unlock(path: str | Path, kind: Kind, password: str, *, max_bytes: int, limits: Limits | None = None) -> bytes:
    """The same file without its protection. Raises ExtractionFailed, with `wrong_password` among its reasons."""
    limits = limits or Limits()
    with opened(path) as source, Child({"op": "unlock", "kind": kind}, limits, source=source, secret=password) as child:
        try:
            size = receive(child, UNLOCK_S).unlocked
            data = child.read_rest(UNLOCK_S, max_bytes)
        except ChildLost as lost:
            raise ExtractionFailed(lost.reason) from lost
    if size is None or size != len(data) or not data:
        raise ExtractionFailed(Reason.CRASHED)
    return data


def ocr_page(
    path: str | Path, kind: Kind, number: int, *, limits: Limits | None = None, language: str | None = None
) -> PageRecord:
    """Recognise the text of page `number` from its picture. Raises ExtractionFailed.

    `language`: that of other pages (ISO 639-1), which saves a look when this one is in it too.
    """
    from apps.files.extraction.ocr.recognise import recognise  # late, for the child's sake: see `receive`

    return recognise(path, kind, number, limits or Limits(), language=language)


def sandbox_report() -> SandboxReport:
    """Start a child that only reports which layers of the sandbox hold on this machine."""
    with Child({"op": "probe"}, Limits(wall_s=20.0)) as child:
        try:
            said = receive(child, 20.0).sandbox or {}
        except ChildLost:
            said = {}
    return SandboxReport(
        network=NETWORKS.get(said.get("network"), "none"),
        syscalls=said.get("syscalls") is True,
        files=said.get("files") is True,
        privileges=said.get("privileges") is True,
    )
