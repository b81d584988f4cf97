"""OpenDocument text and presentations: headings, paragraphs, lists, tables, notes; a section a slide."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO

from apps.files.extraction.assemble import clean
from apps.files.extraction.content import (
    Content,
    Package,
    Scope,
    as_slides,
    bounded,
    parse_xml,
    parted,
    stands_apart,
    table_text,
)
from apps.files.extraction.types import HEADING_MAX_CHARS, Category, Element, ExtractionFailed, Reason

_NS = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
_TEXT, _TABLE, _DRAW, _OFFICE = _NS % "text", _NS % "table", _NS % "drawing", _NS % "office"
_MANIFEST = _NS % "manifest"
_DC, _META = "{http://purl.org/dc/elements/1.1/}", _NS % "meta"
_TITLE = f"{_DC}title"
_UNSEEN = frozenset(
    {f"{_TEXT}tracked-changes", f"{_OFFICE}forms", f"{_TEXT}note-citation", f"{_TEXT}ruby-text", f"{_TEXT}hidden-text"}
    | {f"{_DC}creator", f"{_DC}date", f"{_META}date-string", f"{_META}creator-initials"}
)
# Paragraphs of their own inside a paragraph.
_PICTURE, _ADDRESS = f"{_DRAW}image", "{http://www.w3.org/1999/xlink}href"
_HELD = frozenset({f"{_TEXT}note-body", f"{_DRAW}text-box", f"{_OFFICE}annotation", _PICTURE})
_CLASS = f"{_NS % 'presentation'}class"
_EDGES = {
    f"{_NS % 'style'}{name}{side}": category
    for name, category in (("header", Category.HEADER), ("footer", Category.FOOTER))
    for side in ("", "-left", "-first")
}
_MAX_DEPTH = 40
_MAX_REPEATS = 200
_REPEATED = 80  # characters; longer cells are not said twice
_MAX_COMMENTS = 5_000


class _Body:
    """`package` has the pictures; without one they are passed over."""

    def __init__(self, package: Package | None = None) -> None:
        self._package = package

    def _picture(self, node: Any) -> list[Element]:
        address = (node.get(_ADDRESS) or "").removeprefix("./")
        return self._package.picture(address) if self._package and address.startswith("Pictures/") else []

    def elements(self, node: Any, depth: int = 0, *, listed: bool = False) -> Iterator[Element]:
        if depth > _MAX_DEPTH:
            return
        if node.get(_CLASS) == "title" and (title := _said(node)) and len(title) <= HEADING_MAX_CHARS:
            yield Element(Category.TITLE, title, level=1)
            return
        for child in node:
            tag = child.tag
            if tag == f"{_TEXT}h":
                level = child.get(f"{_TEXT}outline-level", "1")
                yield from self._paragraph(child, Category.TITLE, min(9, int(level)) if level.isdigit() else 1, depth)
            elif tag == f"{_TEXT}p":
                yield from self._paragraph(
                    child, Category.LIST_ITEM if listed else Category.NARRATIVE_TEXT, None, depth
                )
            elif tag == f"{_TABLE}table":
                yield from self._table(child, depth)
            elif tag == _PICTURE:
                yield from self._picture(child)
            elif isinstance(tag, str) and tag not in _UNSEEN:
                yield from self.elements(child, depth + 1, listed=listed or tag == f"{_TEXT}list")

    def _paragraph(self, node: Any, category: Category, level: int | None, depth: int) -> Iterator[Element]:
        parts: list[str] = []
        held: list[Any] = []
        _collect(node, parts, held, 0)
        text = "\n".join(line for part in "".join(parts).split("\n") if (line := clean(part)))
        if text:
            fits = category is not Category.TITLE or len(text) <= HEADING_MAX_CHARS
            yield Element(category, text, level=level) if fits else Element(Category.NARRATIVE_TEXT, text)
        for inner in held:
            yield from self._picture(inner) if inner.tag == _PICTURE else self.elements(inner, depth + 1)

    def _table(self, table: Any, depth: int) -> Iterator[Element]:
        rows: list[list[str]] = []
        inner: list[Element] = []
        for row in table.iter(f"{_TABLE}table-row"):
            if next(row.iterancestors(f"{_TABLE}table")) is not table:
                continue
            texts: list[str] = []
            for cell in row:
                if cell.tag == f"{_TABLE}table-cell":
                    texts += self._cell(cell, depth, inner)
                elif cell.tag == f"{_TABLE}covered-table-cell":  # a cell beside or above reaches over it
                    above = rows[-1][len(texts)] if rows and len(texts) < len(rows[-1]) else ""
                    covering = texts[-1] if self._wide(cell) and texts else above
                    texts.append(covering if len(covering) <= _REPEATED else "")
            rows.append(texts)
        if text := table_text(rows):
            yield Element(Category.TABLE, text)
        yield from inner

    @staticmethod
    def _wide(covered: Any) -> bool:
        """Whether the cell that covers this one stands in the same row."""
        before = covered.getprevious()
        while before is not None and before.tag == f"{_TABLE}covered-table-cell":
            before = before.getprevious()
        return before is not None and before.get(f"{_TABLE}number-columns-spanned", "1") not in ("", "1")

    def _cell(self, cell: Any, depth: int, inner: list[Element]) -> list[str]:
        """Its text as often as it stands; tables and pictures in it are added to `inner`."""
        elements = list(self.elements(cell, depth + 1))
        inner += (element for element in elements if stands_apart(element))
        text = " ".join(element.text for element in elements if not stands_apart(element))
        repeats = cell.get(f"{_TABLE}number-columns-repeated", "1")
        return [text] * (min(int(repeats), _MAX_REPEATS) if text and repeats.isdigit() else 1)


def _collect(node: Any, parts: list[str], held: list[Any], depth: int) -> None:
    """The text of a paragraph into `parts`; notes and boxes, which have paragraphs of their own, into `held`."""
    parts.append(node.text or "")
    for child in node:
        if child.tag in _HELD:
            held.append(child)
        elif child.tag == f"{_TEXT}line-break":
            parts.append("\n")
        elif child.tag in (f"{_TEXT}s", f"{_TEXT}tab"):
            parts.append(" ")
        elif isinstance(child.tag, str) and child.tag not in _UNSEEN and depth < _MAX_DEPTH:
            _collect(child, parts, held, depth + 1)
        parts.append(child.tail or "")


def _said(node: Any) -> str:
    """All paragraphs of a frame in one line."""
    parts: list[str] = []
    for paragraph in node.iter(f"{_TEXT}p"):
        _collect(paragraph, parts, [], 0)
        parts.append(" ")
    return clean("".join(parts).replace("\n", " "))


def _edges(package: Package) -> Iterator[Element]:
    """Headers and footers of a text, each text once."""
    seen = set()
    root = package.find_xml("styles.xml")
    for node in root.iter(*_EDGES) if root is not None else ():
        for element in _Body().elements(node):
            if element.text not in seen:
                seen.add(element.text)
                yield Element(_EDGES[node.tag], element.text)


def check_open(package: Package) -> None:
    """Raises ExtractionFailed when the document is protected; also that of a spreadsheet."""
    manifest = package.find_xml("META-INF/manifest.xml")
    if manifest is not None and next(manifest.iter(f"{_MANIFEST}encryption-data"), None) is not None:
        raise ExtractionFailed(Reason.ENCRYPTED)


def comments(package: Package) -> dict[str, list[Element]]:
    """Comments on the cells of a spreadsheet, by the name of the sheet."""
    found: dict[str, list[Element]] = {}
    if "content.xml" not in package.names or b"office:annotation" not in (data := package.read("content.xml")):
        return found
    for table in parse_xml(data).iter(f"{_TABLE}table"):
        notes = islice(table.iter(f"{_OFFICE}annotation"), _MAX_COMMENTS)
        texts = (" ".join(element.text for element in _Body().elements(note)) for note in notes)
        name = str(table.get(f"{_TABLE}name") or "")
        found[name] = [Element(Category.UNCATEGORIZED_TEXT, f"Comment: {text}") for text in texts if text]
    return found


def read(file: BinaryIO, scope: Scope) -> Content:
    """Raises ExtractionFailed."""
    package = Package(file, scope)
    check_open(package)
    body = package.xml("content.xml").find(f"{_OFFICE}body")
    if body is None or not len(body):
        raise ExtractionFailed(Reason.DAMAGED)
    drawn = list(body[0].iter(f"{_DRAW}page"))
    read = _Body(package)
    sections = [list(bounded(read.elements(part))) for part in drawn] or parted(bounded(read.elements(body[0])))
    if not drawn:
        sections[-1] += _edges(package)
    meta = package.find_xml("meta.xml")
    title = clean(next((node.text or "" for node in meta.iter(_TITLE)), "")) if meta is not None else ""
    return Content(as_slides(sections) if drawn else sections, title[:HEADING_MAX_CHARS])
