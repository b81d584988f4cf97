"""What a reader of a kind without pages of its own answers, and the scope it reads in.

Every such reader is one function `read(file, scope) -> Content`. Files inside files (attachments, embedded
documents, members of an archive) are read through `Scope.inside`, which bounds their depth and their number.
"""

from __future__ import annotations

import io
import posixpath
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO
from xml.parsers import expat

import olefile
from lxml import etree

from apps.files.extraction.assemble import clean
from apps.files.extraction.pictures import Pictures
from apps.files.extraction.types import (
    HEADING_MAX_CHARS,
    LOCATOR_MAX_CHARS,
    Category,
    Element,
    ExtractionFailed,
    Locator,
    Notice,
    Reason,
)

MAX_DEPTH = 3
MAX_PARTS = 200
MAX_ELEMENTS = 200_000
_MAX_MEMBERS = 10_000
_MAX_RATIO = 200
_RATIO_FROM = 8 << 20
_DRAWING_S = 30.0
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_TITLE = "{http://purl.org/dc/elements/1.1/}title"


@dataclass(slots=True)
class Content:
    """`sections` start pages of their own: slides, sheets, chapters, attachments."""

    sections: list[list[Element]]
    title: str = ""

    @property
    def elements(self) -> list[Element]:
        return [element for section in self.sections for element in section]


ReadPart = Callable[[str, bytes, "Scope"], "Content | None"]


@dataclass(slots=True)
class _Spent:
    """What all the parts of one file have used together, and may still use of space and of time to draw pages."""

    unpacked_bytes: int
    parts: int = 0
    drawing_s: float = _DRAWING_S
    notices: set[Notice] = field(default_factory=set)
    pictures: Pictures = field(default_factory=Pictures)


@dataclass(frozen=True, slots=True)
class Scope:
    """Bounds of one file and of everything inside it. `read_part` reads a part by its name, None if it cannot."""

    spent: _Spent
    max_bytes: int
    read_part: ReadPart
    depth: int = 0

    @classmethod
    def of(cls, unpacked_bytes: int, read_part: ReadPart, *, pictured: bool = True) -> Scope:
        """Without `pictured` it is only said that there are pictures."""
        return cls(_Spent(unpacked_bytes, pictures=Pictures(pictured)), unpacked_bytes, read_part)

    def notice(self, notice: Notice) -> None:
        self.spent.notices.add(notice)

    def spend(self, count: int) -> None:
        """Count bytes that were unpacked. Raises ExtractionFailed when all files inside take too many."""
        self.spent.unpacked_bytes -= count
        if self.spent.unpacked_bytes < 0:
            raise ExtractionFailed(Reason.TOO_LARGE)

    def picture(self, size: int, load: Callable[[], bytes], *, most: int = 1) -> list[Element]:
        """The places of a picture of `size` bytes that is to be recognised, one for each of its first `most` pages;
        none when there is nothing to recognise. It never ends the reading of what it stands in."""
        try:
            return [
                Element(Category.IMAGE, "", picture=name) for name in self.spent.pictures.add(size, load, most=most)
            ]
        except (ExtractionFailed, MemoryError):
            self.notice(Notice.PICTURES_UNREAD)
            return []

    def inside(self, name: str, load: Callable[[], bytes]) -> list[list[Element]]:
        """The sections of a file inside this one, under its name. What cannot be read is named all the same."""
        return self.within(name, lambda below: self.read_part(name, load(), below))

    def within(self, name: str, read: Callable[[Scope], Content | None]) -> list[list[Element]]:
        """The same for what is no file of its own, and is read by `read` one level below."""
        heading = Element(Category.TITLE, f"Attachment: {name}"[:HEADING_MAX_CHARS], level=min(self.depth + 2, 9))
        self.spent.parts += 1
        if self.depth >= MAX_DEPTH or self.spent.parts > MAX_PARTS:
            self.notice(Notice.DEPTH_LIMITED)
            return [of_part(name, [heading])]
        content = None
        try:
            content = read(replace(self, depth=self.depth + 1))
        except ExtractionFailed as failed:
            if failed.reason is Reason.TOO_LARGE:
                raise
        if content is None:
            self.notice(Notice.PARTS_UNREAD)
            return [of_part(name, [heading])]
        first, *rest = content.sections or [[]]
        return [of_part(name, section) for section in ([heading, *first], *rest)]


def of_part(part: str, elements: Iterable[Element]) -> list[Element]:
    """The elements as those of a part of the file, which may have parts itself."""

    def located(locator: Locator) -> Locator:
        path = f"{part}, {locator.part}" if locator.part else part
        return replace(locator, part=path[:LOCATOR_MAX_CHARS])

    return [replace(element, locator=located(element.locator or Locator())) for element in elements]


def as_slides(sections: Iterable[Iterable[Element]]) -> list[list[Element]]:
    """The sections as slides, from the first on."""
    return [
        [replace(element, locator=Locator(slide=number)) for element in section]
        for number, section in enumerate(sections, start=1)
    ]


class Package:
    """A ZIP container, opened within bounds. Raises ExtractionFailed."""

    def __init__(self, file: BinaryIO, scope: Scope) -> None:
        self._scope = scope
        head = file.read(len(OLE))
        if head == OLE:
            raise ExtractionFailed(ole_reason(file))
        file.seek(0)
        try:
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
            raise ExtractionFailed(Reason.DAMAGED) from error
        self.members = self._zip.infolist()
        total = sum(member.file_size for member in self.members)
        packed = sum(member.compress_size for member in self.members) or 1
        if len(self.members) > _MAX_MEMBERS or total > scope.max_bytes:
            raise ExtractionFailed(Reason.TOO_LARGE)
        if total > _RATIO_FROM and total / packed > _MAX_RATIO:
            raise ExtractionFailed(Reason.TOO_LARGE)
        self.names = {member.filename for member in self.members}
        self._shown: set[str] = set()

    def read(self, name: str) -> bytes:
        """A member's bytes; zipfile holds it to its announced size. Raises ExtractionFailed."""
        try:
            member = self._zip.getinfo(name)
        except KeyError as error:
            raise ExtractionFailed(Reason.DAMAGED) from error
        self._scope.spend(member.file_size)
        return self._unpacked(member)

    def _unpacked(self, member: zipfile.ZipInfo) -> bytes:
        if member.flag_bits & 1:
            raise ExtractionFailed(Reason.ENCRYPTED)
        try:
            return self._zip.read(member)
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, NotImplementedError) as error:
            raise ExtractionFailed(Reason.DAMAGED) from error

    def picture(self, name: str) -> list[Element]:
        """The place of a member that is a picture, where it is met first (`Scope.picture`)."""
        if name not in self.names or name in self._shown:
            return []
        self._shown.add(name)
        member = self._zip.getinfo(name)
        return self._scope.picture(member.file_size, lambda: self._unpacked(member))

    def size(self, name: str) -> int:
        """A member's unpacked bytes; 0 where there is none."""
        return next((member.file_size for member in self.members if member.filename == name), 0)

    def xml(self, name: str) -> Any:
        """The root of an XML member. Raises ExtractionFailed."""
        return parse_xml(self.read(name))

    def find_xml(self, name: str) -> Any | None:
        return self.xml(name) if name in self.names else None

    def relations(self, part: str) -> dict[str, tuple[str, str]]:
        """Type and path of what a part of an Office document refers to inside the package, by id."""
        folder, name = posixpath.split(part)
        root = None
        with suppress(ExtractionFailed):  # a part whose references are damaged is read without them
            root = self.find_xml(posixpath.join(folder, "_rels", f"{name}.rels"))
        return {
            str(node.get("Id")): (
                str(node.get("Type")).rpartition("/")[2],
                posixpath.normpath(posixpath.join(folder, str(node.get("Target")))).lstrip("/"),
            )
            for node in (root if root is not None else ())
            if isinstance(node.tag, str) and node.get("TargetMode") != "External"
        }

    def title(self) -> str:
        """The title that an Office document has among its properties."""
        with suppress(ExtractionFailed):
            if (root := self.find_xml("docProps/core.xml")) is not None:
                return clean(root.findtext(_TITLE) or "")[:HEADING_MAX_CHARS]
        return ""

    def repacked(self, changed: Mapping[str, bytes]) -> bytes:
        """The package with other content in some members. Raises ExtractionFailed."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            for name in sorted(self.names):
                if not name.endswith("/"):
                    archive.writestr(name, changed[name] if name in changed else self.read(name))
        return buffer.getvalue()


def closed_xml(data: bytes) -> bytes | None:
    """What can be saved of XML that breaks off, its elements closed; None when nothing is wrong with it.

    Raises ExtractionFailed when there is nothing to save.
    """
    try:
        expat.ParserCreate().Parse(data, True)
    except expat.ExpatError:
        parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True, load_dtd=False)
        try:
            root = etree.fromstring(data, parser)
        except (etree.LxmlError, ValueError):
            root = None
        if root is None:
            raise ExtractionFailed(Reason.DAMAGED) from None
        return bytes(etree.tostring(root))
    return None


def parse_xml(data: bytes) -> Any:
    """Entities are not expanded, nothing is fetched, depth and size of nodes are libxml2's. Names of Office's strict
    documents become those of all others. Raises ExtractionFailed."""
    data = _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", data)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True)
    try:
        return etree.fromstring(data, parser)
    except (etree.LxmlError, ValueError) as error:
        raise ExtractionFailed(Reason.DAMAGED) from error


@contextmanager
def opened_ole(file: BinaryIO) -> Iterator[olefile.OleFileIO]:
    """An OLE container. Raises ExtractionFailed, also for what damage leads to while it is read."""
    try:
        with olefile.OleFileIO(file) as ole:
            yield ole
    except (OSError, struct.error, ValueError, LookupError, ArithmeticError, AttributeError, TypeError) as error:
        raise ExtractionFailed(Reason.DAMAGED) from error


def ole_reason(file: BinaryIO) -> Reason:
    """What an OLE file means where a ZIP was expected: Office keeps an encrypted package in one."""
    file.seek(0)
    with opened_ole(file) as ole:
        return Reason.ENCRYPTED if ole.exists("EncryptedPackage") else Reason.DAMAGED


def table_lines(rows: Iterable[tuple[int, Iterable[str]]]) -> Iterator[tuple[int, str]]:
    """Numbered rows as lines with " | " between cells, also empty ones; empty rows are left out, and line breaks in
    cells."""
    for number, row in rows:
        line = " | ".join(" ".join(cell.split()) for cell in row)
        if line.strip(" |"):
            yield number, line


def table_text(rows: Iterable[Iterable[str]]) -> str:
    return "\n".join(line for _, line in table_lines(enumerate(rows)))


def stands_apart(element: Element) -> bool:
    """Whether what is in a cell follows its table."""
    return element.category is Category.TABLE or element.picture is not None


def parted(elements: Iterable[Element]) -> list[list[Element]]:
    """Sections of a document without pages of its own: each picture to be recognised begins one, but for the first, so
    that of a document of scans each is a page."""
    sections: list[list[Element]] = [[]]
    pictured = False
    for element in elements:
        if element.picture and pictured:
            sections.append([])
        pictured = pictured or element.picture is not None
        sections[-1].append(element)
    return sections


def bounded(elements: Iterable[Element]) -> Iterator[Element]:
    for _, element in zip(range(MAX_ELEMENTS), elements, strict=False):
        yield element
