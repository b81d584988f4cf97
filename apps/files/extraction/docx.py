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

from apps.files.extraction.assemble import clean
from apps.files.extraction.content import Content, Package, Scope, bounded, parse_xml
from apps.files.extraction.types import HEADING_MAX_CHARS, Category, Element, ExtractionFailed, Reason

_MAX_DEPTH = 12

_P, _TBL, _TR, _TC = qn("w:p"), qn("w:tbl"), qn("w:tr"), qn("w:tc")
_TEXT, _TAB, _BREAK, _RETURN, _HYPHEN = qn("w:t"), qn("w:tab"), qn("w:br"), qn("w:cr"), qn("w:noBreakHyphen")
_RUN_PROPERTIES, _PARAGRAPH_PROPERTIES = qn("w:rPr"), qn("w:pPr")
_DELETED, _MOVED, _INSTRUCTION, _FALLBACK = qn("w:del"), qn("w:moveFrom"), qn("w:instrText"), "}Fallback"
_CONTENTS = frozenset(
    {qn("w:sdt"), qn("w:sdtContent"), qn("w:ins"), qn("w:moveTo"), qn("w:smartTag"), qn("w:customXml")}
)
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
        tag = child.tag
        if tag == _TEXT:
            parts.append(child.text or "")
        elif tag == _TAB:
            parts.append("\t")
        elif tag in (_BREAK, _RETURN):
            parts.append("\n")
        elif tag == _HYPHEN:
            parts.append("-")
        elif not isinstance(tag, str) or tag.endswith(_FALLBACK):
            continue
        elif tag not in (_DELETED, _MOVED, _INSTRUCTION, _RUN_PROPERTIES, _PARAGRAPH_PROPERTIES):
            if tag == _P and parts:
                parts.append("\n")
            stack.append(iter(child))
    return "\n".join(line for part in "".join(parts).split("\n") if (line := clean(part.replace("\t", " "))))


class _Body:
    def __init__(self, styles: _Styles) -> None:
        self._styles = styles

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
        rows = [" | ".join(self._cells(row, depth)) for row in node.iter(_TR) if _owner(row) is node]
        text = "\n".join(row for row in rows if row.strip(" |"))
        if text:
            yield Element(Category.TABLE, text)

    def _cells(self, row: Any, depth: int) -> Iterator[str]:
        for cell in row.iter(_TC):
            if _owner(cell) is row:
                yield " ".join(element.text.replace("\n", " ") for element in self.elements(cell, depth + 1))


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
        body = _Body(_Styles(document))
        parts = sorted(document.part.package.iter_parts(), key=lambda part: str(part.partname))
        elements = [*bounded(body.elements(document.element.body)), *_notes(parts, body), *_edges(parts, body)]
        title = clean(document.core_properties.title or "")
        inside = [(_part_name(part), part.blob) for part in parts if "/embeddings/" in str(part.partname)]
    except (PackageNotFoundError, LxmlError, zipfile.BadZipFile, KeyError, ValueError, AttributeError) as error:
        raise ExtractionFailed(Reason.DAMAGED) from error
    sections = [section for name, data in inside for section in scope.inside(name, lambda data=data: data)]  # type: ignore[misc]
    return Content([elements, *sections], title[:HEADING_MAX_CHARS])
