"""Word documents: paragraphs, headings, lists and tables in the order of the text."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, BinaryIO

from apps.files.extraction import drawingml
from apps.files.extraction.assemble import clean
from apps.files.extraction.content import Content, Package, Scope, bounded, parted, stands_apart, table_text
from apps.files.extraction.docx_numbers import Numbering, W
from apps.files.extraction.docx_styles import PROPERTIES, Style, Styles
from apps.files.extraction.docx_text import BOX, FALLBACK, text_of
from apps.files.extraction.types import HEADING_MAX_CHARS, Category, Element, ExtractionFailed, Notice, Reason

_MAX_DEPTH = 12
_MAIN = "word/document.xml"
_P, _TBL, _TR, _TC, _CHUNK = f"{W}p", f"{W}tbl", f"{W}tr", f"{W}tc", f"{W}altChunk"
_CONTENTS = frozenset(f"{W}{name}" for name in ("sdt", "sdtContent", "ins", "moveTo", "smartTag", "customXml"))
_DRAWING, _OLD_DRAWING = f"{W}drawing", f"{W}pict"
_OLD_PICTURE = "{urn:schemas-microsoft-com:vml}imagedata"
_DESCRIBED = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}docPr"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds"
_REPEATED = 80  # characters; longer cells are not said twice


class _Body:
    """The texts of one document. `main` is the part that its parts are named in."""

    def __init__(self, package: Package, scope: Scope, main: str) -> None:
        self._package, self._scope = package, scope
        self.relations = package.relations(main)
        self._styles = Styles(self._only("styles"))
        self._numbers = Numbering(self._only("numbering"))
        self._cells_open = 0
        self._pictured = True

    def parts(self, kind: str) -> list[str]:
        """The parts of a kind that there are, each once."""
        paths = {path for known, path in self.relations.values() if known == kind}
        return sorted(path for path in paths if path in self._package.names)

    def _only(self, kind: str) -> Any | None:
        with suppress(ExtractionFailed):
            return next((self._package.xml(path) for path in self.parts(kind)), None)
        return None

    def beside(self, node: Any) -> Iterator[Element]:
        """Elements of a part beside the text. Its pictures are passed over, the others that follow too."""
        self._pictured = False
        yield from self.elements(node)

    def elements(self, node: Any, depth: int = 0) -> Iterator[Element]:
        if depth > _MAX_DEPTH:
            return
        for child in node:
            if child.tag == _P:
                yield from self._paragraph(child, depth)
            elif child.tag == _TBL:
                yield from self._table(child, depth)
            elif child.tag in _CONTENTS:
                yield from self.elements(child, depth + 1)
            elif child.tag == _CHUNK:
                yield from self._chunk(child)

    def _chunk(self, node: Any) -> Iterator[Element]:
        """A document of any kind that stands for a part of this one."""
        _, path = self.relations.get(str(node.get(f"{_RELATION}id")), ("", ""))
        for section in self._scope.inside(path, lambda: self._package.read(path)):
            said = (element for element in section if not element.text.startswith("Attachment: "))
            yield from (replace(element, locator=None, rows=()) for element in said)

    def _paragraph(self, node: Any, depth: int) -> Iterator[Element]:
        yield from self._worded(node)
        for box in node.iter(BOX):
            if _owner_box(box) is None:
                yield from self.elements(box, depth + 1)
        for drawing in node.iter(_DRAWING, _OLD_DRAWING):
            yield from self._drawn(drawing)
            if self._pictured:
                yield from self._pictures(drawing)

    def _pictures(self, drawing: Any) -> Iterator[Element]:
        for identity in _embedded(drawing):
            kind, path = self.relations.get(identity, ("", ""))
            if kind == "image":
                yield from self._package.picture(path)

    def _drawn(self, drawing: Any) -> Iterator[Element]:
        """A chart, a diagram, or what the author wrote about a picture."""
        parts = [node.get(f"{_RELATION}id") for node in drawing.iter(f"{drawingml.C}chart")]
        parts += [node.get(f"{_RELATION}dm") for node in drawing.iter(_DIAGRAM)]
        for identity in parts:
            with suppress(ExtractionFailed):
                yield from drawingml.read(self._package.xml(self.relations.get(identity, ("", ""))[1]))
        for node in drawing.iter(_DESCRIBED):
            if " " in (text := clean(node.get("descr") or "")):
                yield Element(Category.IMAGE, text)

    def _worded(self, node: Any) -> Iterator[Element]:
        style = self._styles.of(node.find(PROPERTIES))
        number = self._numbers.next(style.place)
        text = text_of(node)
        if not text:
            return
        if number and not self._cells_open:
            text = f"{number} {text}"
        if style.category is Category.TITLE and len(text) > HEADING_MAX_CHARS:
            style = Style()
        yield Element(style.category, text, level=style.level)

    def _table(self, node: Any, depth: int) -> Iterator[Element]:
        """A table, then those and the pictures inside it; one of a single cell only frames what is in it."""
        above: list[str] = []
        rows: list[list[str]] = []
        inner: list[Element] = []
        own = [row for row in node.iter(_TR) if _owner(row) is node]
        if len(own) == 1 and len(cells := [cell for cell in own[0].iter(_TC) if _owner(cell) is own[0]]) == 1:
            yield from self.elements(cells[0], depth + 1)
            return
        for row in own:
            above = list(self._cells(row, depth, above, inner))
            rows.append(above)
        if text := table_text(rows):
            yield Element(Category.TABLE, text)
        yield from inner

    def _cells(self, row: Any, depth: int, above: list[str], inner: list[Element]) -> Iterator[str]:
        """Texts of the cells, those repeated that reach over several columns or down from the row above. Tables and
        pictures inside are added to `inner`."""
        column = _left_out(row)
        yield from [""] * column
        for cell in row.iter(_TC):
            if _owner(cell) is not row:
                continue
            self._cells_open += 1
            elements = list(self.elements(cell, depth + 1))
            self._cells_open -= 1
            inner += (element for element in elements if stands_apart(element))
            text = " ".join(element.text.replace("\n", " ") for element in elements if not stands_apart(element))
            wide, merged = _merged(cell)
            if merged and not text and column < len(above) and len(above[column]) <= _REPEATED:
                text = above[column]
            yield text
            for _ in range(wide - 1):
                yield text if len(text) <= _REPEATED else ""
            column += wide


def _embedded(drawing: Any) -> Iterator[str]:
    """Relations to the pictures of a drawing, of either age."""
    for node in drawing.iter(f"{drawingml.A}blip"):
        yield str(node.get(f"{_RELATION}embed"))
    for node in drawing.iter(_OLD_PICTURE):
        yield str(node.get(f"{_RELATION}id"))


def _left_out(row: Any) -> int:
    """How many columns there are before the first cell of a row."""
    before = row.find(f"{W}trPr/{W}gridBefore")
    count = (before.get(f"{W}val") or "") if before is not None else ""
    return min(int(count), 100) if count.isascii() and count.isdigit() else 0


def _merged(cell: Any) -> tuple[int, bool]:
    """How many columns a cell is wide, and whether it goes on from the row above."""
    properties = cell.find(f"{W}tcPr")
    if properties is None:
        return 1, False
    span, down = properties.find(f"{W}gridSpan"), properties.find(f"{W}vMerge")
    wide = (span.get(f"{W}val") or "1") if span is not None else "1"
    return (min(int(wide), 100) if wide.isdigit() else 1), down is not None and down.get(f"{W}val") != "restart"


def _owner(node: Any) -> Any:
    """The table or row that `node` belongs to, looking through content controls."""
    parent = node.getparent()
    while parent is not None and parent.tag in _CONTENTS:
        parent = parent.getparent()
    return parent


def _owner_box(box: Any) -> Any | None:
    """What shows a text box a second time or holds it: the form of it for older programs, or another box."""
    return next((node for node in box.iterancestors() if node.tag == BOX or str(node.tag).endswith(FALLBACK)), None)


_NOTES = {"comments": f"{W}comment", "endnotes": f"{W}endnote", "footnotes": f"{W}footnote"}
_EDGES = {"header": Category.HEADER, "footer": Category.FOOTER}


def _edges(package: Package, body: _Body) -> Iterator[Element]:
    """Headers and footers, each text once: a document has up to six that say the same."""
    seen = set()
    for kind, category in _EDGES.items():
        for path in body.parts(kind):
            for element in body.beside(package.xml(path)):
                if element.text not in seen:
                    seen.add(element.text)
                    yield Element(category, element.text)


def _notes(package: Package, body: _Body) -> Iterator[Element]:
    for kind, tag in _NOTES.items():
        for path in body.parts(kind):
            for note in package.xml(path).iter(tag):
                yield from body.beside(note)


def _main(package: Package) -> str:
    """The part that the document begins with; some programs name it otherwise than Word."""
    paths = (path for kind, path in package.relations("").values() if kind == "officeDocument")
    return next((path for path in paths if path in package.names), _MAIN)


def read(file: BinaryIO, scope: Scope) -> Content:
    """Raises ExtractionFailed."""
    package = Package(file, scope)
    main = _main(package)
    body = _Body(package, scope, main)
    elements = list(bounded(body.elements(next(package.xml(main).iter(f"{W}body"), ()))))
    for beside in (_notes, _edges):
        try:
            elements += beside(package, body)
        except ExtractionFailed as failed:
            if failed.reason is Reason.TOO_LARGE:
                raise
            scope.notice(Notice.PARTS_UNREAD)
    sections = parted(elements)
    for name in sorted(name for name in package.names if "/embeddings/" in name):
        sections += scope.inside(posixpath.basename(name), lambda name=name: package.read(name))  # type: ignore[misc]
    return Content(sections, package.title())
