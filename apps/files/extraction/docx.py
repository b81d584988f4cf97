"""Word documents: paragraphs, headings, lists and tables in the order of the text.

python-docx opens the package and knows its styles; the body is walked here, because its own tables take
quadratic time and it leaves out content controls, inserted text and text boxes.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from typing import Any, BinaryIO

from docx import Document as open_docx
from docx.opc.exceptions import PackageNotFoundError
from docx.oxml.ns import qn
from lxml.etree import LxmlError

from apps.files.extraction import drawingml, formulas
from apps.files.extraction.assemble import clean
from apps.files.extraction.content import Content, Package, Scope, bounded, parse_xml, parted, table_text
from apps.files.extraction.types import HEADING_MAX_CHARS, Category, Element, ExtractionFailed, Reason

_MAX_DEPTH = 12

_P, _TBL, _TR, _TC = qn("w:p"), qn("w:tbl"), qn("w:tr"), qn("w:tc")
_TEXT, _TAB, _BREAK, _RETURN, _HYPHEN = qn("w:t"), qn("w:tab"), qn("w:br"), qn("w:cr"), qn("w:noBreakHyphen")
_RUN_PROPERTIES, _PARAGRAPH_PROPERTIES = qn("w:rPr"), qn("w:pPr")
_DELETED, _MOVED, _INSTRUCTION, _FALLBACK = qn("w:del"), qn("w:moveFrom"), qn("w:instrText"), "}Fallback"
_CONTENTS = frozenset(
    {qn("w:sdt"), qn("w:sdtContent"), qn("w:ins"), qn("w:moveTo"), qn("w:smartTag"), qn("w:customXml")}
)
_RUN, _SYMBOL, _VANISH, _DRAWING, _RUBY = qn("w:r"), qn("w:sym"), qn("w:vanish"), qn("w:drawing"), qn("w:rt")
_SILENT = frozenset({_DELETED, _MOVED, _INSTRUCTION, _RUN_PROPERTIES, _PARAGRAPH_PROPERTIES, _RUBY})
_WINGDINGS = {
    0xFC: "\u2713",
    0xFB: "\u2717",
    0xFE: "\u2611",
    0xFD: "\u2612",
    0xA8: "\u2610",
    0x6F: "\u2610",
    0xE0: "\u2192",
}
_DESCRIBED = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}docPr"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds"
_OLD_DRAWING, _OLD_PICTURE = qn("w:pict"), "{urn:schemas-microsoft-com:vml}imagedata"
_REPEATED = 80  # characters; longer cells are not said twice
_HEADING = re.compile(r"^(?:heading|überschrift|titre|título|titolo|заголовок)\s*(\d)", re.IGNORECASE)
_LIST = re.compile(r"^list\b|aufzählung|liste", re.IGNORECASE)
_CODE = re.compile(r"code|html preformatted|source|macro", re.IGNORECASE)


class _Styles:
    """Category and level of a paragraph style by its id, following what it is based on."""

    def __init__(self, document: Any) -> None:
        self._by_id = {style.style_id: style for style in document.styles if style.type == 1}
        self._known: dict[str | None, tuple[Category, int | None]] = {None: (Category.NARRATIVE_TEXT, None)}

    def of(self, style_id: str | None) -> tuple[Category, int | None]:
        if style_id not in self._known:
            self._known[style_id] = self._look_up(style_id)
        return self._known[style_id]

    def _look_up(self, style_id: str | None) -> tuple[Category, int | None]:
        style = self._by_id.get(style_id)
        for _ in range(_MAX_DEPTH):
            if style is None:
                break
            name = style.name or ""
            level = _outline_level(style.element.find(_PARAGRAPH_PROPERTIES))
            if found := _HEADING.match(name):
                return Category.TITLE, max(1, int(found.group(1)))
            if level is not None:
                return Category.TITLE, level
            if name.lower() in ("title", "titel", "titre"):
                return Category.TITLE, 1
            if name.lower() == "caption":
                return Category.FIGURE_CAPTION, None
            if _LIST.match(name):
                return Category.LIST_ITEM, None
            if _CODE.search(name):
                return Category.CODE_SNIPPET, None
            style = style.base_style
        return Category.NARRATIVE_TEXT, None


def _outline_level(properties: Any) -> int | None:
    level = properties.find(qn("w:outlineLvl")) if properties is not None else None
    value = level.get(qn("w:val"), "9") if level is not None else "9"
    return int(value) + 1 if value.isdigit() and int(value) < 9 else None


def _text(node: Any) -> str:
    """The visible text of a paragraph: insertions are part of it, deletions and field codes are not.

    Text boxes inside stay where they are anchored. Iterative, so that deep nesting cannot end the interpreter.
    """
    parts: list[str] = []
    stack = [iter(node)]
    while stack:
        child = next(stack[-1], None)
        if child is None:
            stack.pop()
            continue
        written = _written(child)
        if written is not None:
            parts.append(written)
        elif _holds_text(child):
            if child.tag == _P and parts:
                parts.append("\n")
            stack.append(iter(child))
    return "\n".join(line for part in "".join(parts).split("\n") if (line := clean(part.replace("\t", " "))))


_MARKS = {_TAB: "\t", _BREAK: "\n", _RETURN: "\n", _HYPHEN: "-"}


def _written(node: Any) -> str | None:
    """What a node without further nodes of text stands for."""
    if node.tag == _TEXT:
        return node.text or ""
    if node.tag == _SYMBOL:
        return _symbol(node)
    if node.tag in formulas.MATHS:
        return f" {formulas.linear(node)} "
    return _MARKS.get(node.tag)


def _holds_text(node: Any) -> bool:
    tag = node.tag
    if not isinstance(tag, str) or tag in _SILENT or tag.endswith(_FALLBACK):
        return False
    return not (tag == _RUN and _vanishes(node))


def _symbol(node: Any) -> str:
    """A character of a font of symbols."""
    code = (node.get(qn("w:char")) or "").upper()
    try:
        value = int(code, 16)
    except ValueError:
        return ""
    known = _WINGDINGS.get(value & 0xFF, "") if "wingdings" in (node.get(qn("w:font")) or "").lower() else ""
    return known or (chr(value) if 0x20 < value < 0xD800 else "")


def _vanishes(run: Any) -> bool:
    """Whether a run is formatted as hidden text."""
    mark = run.find(f"{_RUN_PROPERTIES}/{_VANISH}")
    return mark is not None and mark.get(qn("w:val"), "1") not in ("0", "false", "off")


class _Body:
    """`scope` takes the pictures, each once; without one they are passed over."""

    def __init__(self, styles: _Styles, part: Any, scope: Scope | None = None) -> None:
        self._styles, self._part, self._scope = styles, part, scope
        self._shown: set[str] = set()

    def elements(self, node: Any, depth: int = 0) -> Iterator[Element]:
        if depth > _MAX_DEPTH:
            return
        for child in node:
            if child.tag == _P:
                yield from self._paragraph(child)
            elif child.tag == _TBL:
                yield from self._table(child, depth)
            elif child.tag in _CONTENTS:
                yield from self.elements(child, depth + 1)

    def _paragraph(self, node: Any) -> Iterator[Element]:
        yield from self._worded(node)
        for drawing in node.iter(_DRAWING, _OLD_DRAWING):
            yield from self._drawn(drawing)
            for identity in _pictures(drawing):
                yield from self._picture(identity)

    def _picture(self, identity: str) -> list[Element]:
        relation = self._part.rels.get(identity)
        if self._scope is None or relation is None or relation.is_external:
            return []
        part = relation.target_part
        if part.partname in self._shown:
            return []
        self._shown.add(part.partname)
        return self._scope.picture(len(part.blob), lambda: part.blob)

    def _drawn(self, drawing: Any) -> Iterator[Element]:
        """A chart, a diagram, or what the author wrote about a picture."""
        parts = [node.get(f"{_RELATION}id") for node in drawing.iter(f"{drawingml.C}chart")]
        parts += [node.get(f"{_RELATION}dm") for node in drawing.iter(_DIAGRAM)]
        for identity in parts:
            if identity in self._part.rels:
                yield from drawingml.read(parse_xml(self._part.rels[identity].target_part.blob))
        for node in drawing.iter(_DESCRIBED):
            if " " in (text := clean(node.get("descr") or "")):
                yield Element(Category.IMAGE, text)

    def _worded(self, node: Any) -> Iterator[Element]:
        text = _text(node)
        if not text:
            return
        properties = node.find(_PARAGRAPH_PROPERTIES)
        category, level = Category.NARRATIVE_TEXT, None
        if properties is not None:
            style = properties.find(qn("w:pStyle"))
            category, level = self._styles.of(style.get(qn("w:val")) if style is not None else None)
            direct = _outline_level(properties)
            if direct is not None:
                category, level = Category.TITLE, direct
            elif category is Category.NARRATIVE_TEXT and properties.find(qn("w:numPr")) is not None:
                category = Category.LIST_ITEM
        if category is Category.TITLE and len(text) > HEADING_MAX_CHARS:
            category, level = Category.NARRATIVE_TEXT, None
        yield Element(category, text, level=level)

    def _table(self, node: Any, depth: int) -> Iterator[Element]:
        above: list[str] = []
        rows: list[list[str]] = []
        pictures: list[Element] = []
        for row in node.iter(_TR):
            if _owner(row) is node:
                above = list(self._cells(row, depth, above, pictures))
                rows.append(above)
        if text := table_text(rows):
            yield Element(Category.TABLE, text)
        yield from pictures

    def _cells(self, row: Any, depth: int, above: list[str], pictures: list[Element]) -> Iterator[str]:
        """Texts of the cells, those repeated that reach over several columns or down from the row above. What pictures
        are in them is added to `pictures`."""
        column = 0
        for cell in row.iter(_TC):
            if _owner(cell) is not row:
                continue
            elements = list(self.elements(cell, depth + 1))
            pictures += (element for element in elements if element.picture)
            text = " ".join(element.text.replace("\n", " ") for element in elements if element.text)
            wide, merged = _merged(cell)
            if merged and not text and column < len(above) and len(above[column]) <= _REPEATED:
                text = above[column]
            yield text
            for _ in range(wide - 1):
                yield text if len(text) <= _REPEATED else ""
            column += wide


def _pictures(drawing: Any) -> Iterator[str]:
    """Relations to the pictures of a drawing, of either age."""
    for node in drawing.iter(f"{drawingml.A}blip"):
        yield str(node.get(f"{_RELATION}embed"))
    for node in drawing.iter(_OLD_PICTURE):
        yield str(node.get(f"{_RELATION}id"))


def _merged(cell: Any) -> tuple[int, bool]:
    """How many columns a cell is wide, and whether it goes on from the row above."""
    properties = cell.find(qn("w:tcPr"))
    if properties is None:
        return 1, False
    span, down = properties.find(qn("w:gridSpan")), properties.find(qn("w:vMerge"))
    wide = (span.get(qn("w:val")) or "1") if span is not None else "1"
    return (min(int(wide), 100) if wide.isdigit() else 1), down is not None and down.get(qn("w:val")) != "restart"


def _owner(node: Any) -> Any:
    """The table or row that `node` belongs to, looking through content controls."""
    parent = node.getparent()
    while parent is not None and parent.tag in _CONTENTS:
        parent = parent.getparent()
    return parent


_NOTES = ("footnotes.", "endnotes.", "comments.")
_EDGES = (("header", Category.HEADER), ("footer", Category.FOOTER))
_NOTE_TAGS = (qn("w:footnote"), qn("w:endnote"), qn("w:comment"))


def _part_name(part: Any) -> str:
    return str(part.partname).rpartition("/")[2]


def _edges(parts: list[Any], body: _Body) -> Iterator[Element]:
    """Headers and footers, each text once: a document has up to six that say the same."""
    seen = set()
    for start, category in _EDGES:
        for part in parts:
            if _part_name(part).startswith(start):
                for element in body.elements(parse_xml(part.blob)):
                    if element.text not in seen:
                        seen.add(element.text)
                        yield Element(category, element.text)


def _notes(parts: list[Any], body: _Body) -> Iterator[Element]:
    for part in parts:
        if _part_name(part).startswith(_NOTES):
            for note in parse_xml(part.blob).iter(*_NOTE_TAGS):
                yield from body.elements(note)


def read(file: BinaryIO, scope: Scope) -> Content:
    """Raises ExtractionFailed."""
    Package(file, scope)  # its bounds hold before anything is unpacked
    file.seek(0)
    try:
        document = open_docx(file)
        body = _Body(_Styles(document), document.part)
        parts = sorted(document.part.package.iter_parts(), key=lambda part: str(part.partname))
        pictured = _Body(_Styles(document), document.part, scope)
        elements = [*bounded(pictured.elements(document.element.body)), *_notes(parts, body), *_edges(parts, body)]
        title = clean(document.core_properties.title or "")
        inside = [(_part_name(part), part.blob) for part in parts if "/embeddings/" in str(part.partname)]
    except (PackageNotFoundError, LxmlError, zipfile.BadZipFile, KeyError, ValueError, AttributeError) as error:
        raise ExtractionFailed(Reason.DAMAGED) from error
    sections = [section for name, data in inside for section in scope.inside(name, lambda data=data: data)]  # type: ignore[misc]
    return Content([*parted(elements), *sections], title[:HEADING_MAX_CHARS])
