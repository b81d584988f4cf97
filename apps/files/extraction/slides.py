"""PowerPoint (PPTX): a section a slide, with its title, text, tables and speaker's notes."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from apps.files.extraction import drawingml
from apps.files.extraction.assemble import clean
from apps.files.extraction.content import Content, Package, Scope, as_slides, table_text
from apps.files.extraction.drawingml import A as _A
from apps.files.extraction.drawingml import paragraphs
from apps.files.extraction.types import HEADING_MAX_CHARS, Category, Element, ExtractionFailed, Notice, Reason

_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_SLIDE = re.compile(r"^ppt/slides/slide(\d+)\.xml$")
_TITLES, _EDGES = ("title", "ctrTitle"), ("dt", "ftr", "sldNum", "hdr")
_MAX_DEPTH = 20
_REPEATED = 80  # characters; longer cells are not said twice
_YES, _NO = ("1", "true"), ("0", "false")


def _slide_parts(package: Package) -> list[str]:
    """Slides in the order they are shown; in that of their numbers where the order cannot be told."""
    named = sorted((name for name in package.names if _SLIDE.match(name)), key=lambda name: (len(name), name))
    try:
        relations = package.relations("ppt/presentation.xml")
        ids = package.xml("ppt/presentation.xml").iter(f"{_P}sldId")
        ordered = [relations[str(node.get(f"{_R}id"))][1] for node in ids]
    except (ExtractionFailed, KeyError):
        return named
    return [part for part in ordered if part in package.names] or named


def _table(node: Any) -> Iterator[Element]:
    """A table; cells that reach over several are repeated."""
    rows: list[list[str]] = []
    for row in node.iter(f"{_A}tr"):
        texts: list[str] = []
        for column, cell in enumerate(row.iter(f"{_A}tc")):
            text = " ".join(paragraphs(cell))
            if not text and cell.get("hMerge") in _YES and texts:
                text = texts[-1]
            elif not text and cell.get("vMerge") in _YES and rows and column < len(rows[-1]):
                text = rows[-1][column]
            texts.append(text if len(text) <= _REPEATED or paragraphs(cell) else "")
        rows.append(texts)
    if text := table_text(rows):
        yield Element(Category.TABLE, text)


Picture = Callable[[Any], Iterator[Element]]


def _shapes(tree: Any, picture: Picture, depth: int = 0) -> Iterator[Element]:
    """Elements of shapes; `picture` gives those of the pictures that a shape is filled with."""
    if depth > _MAX_DEPTH:
        return
    for node in tree:
        if node.tag in (f"{_P}grpSp", f"{_MC}AlternateContent", f"{_MC}Choice"):
            yield from _shapes(node, picture, depth + 1)
        elif node.tag == f"{_P}graphicFrame":
            for table in node.iter(f"{_A}tbl"):
                yield from _table(table)
        elif node.tag == f"{_P}sp":
            yield from _shape(node)
            yield from picture(node)
        elif node.tag == f"{_P}pic":
            if text := _described(node):
                yield Element(Category.IMAGE, text)
            yield from picture(node)


def _described(node: Any) -> str:
    """What the author wrote about a picture; names of files are not that."""
    properties = node.find(f"{_P}nvPicPr/{_P}cNvPr")
    text = clean(properties.get("descr") or "") if properties is not None else ""
    return text if " " in text else ""


def _shape(node: Any) -> Iterator[Element]:
    body = node.find(f"{_P}txBody")
    if body is None:
        return
    placeholder = node.find(f"{_P}nvSpPr/{_P}nvPr/{_P}ph")
    role = placeholder.get("type", "body") if placeholder is not None else ""
    texts = paragraphs(body)
    if role in _TITLES and (title := " ".join(texts).replace("\n", " ")) and len(title) <= HEADING_MAX_CHARS:
        yield Element(Category.TITLE, title, level=1)
        return
    category = Category.FOOTER if role in _EDGES else Category.LIST_ITEM if role == "body" else Category.NARRATIVE_TEXT
    for text in texts:
        yield Element(category, text)


_DRAWN = ("chart", "diagramData")
_REFERRED = (*_DRAWN, "notesSlide", "comments")


def _beside(package: Package, part: str, scope: Scope) -> Iterator[Element]:
    """What a slide refers to: charts and diagrams on it, the speaker's notes, comments. What is damaged is left out."""
    notes: list[Element] = []
    for kind, target in package.relations(part).values():
        if target not in package.names or kind not in _REFERRED:
            continue
        try:
            root = package.xml(target)
        except ExtractionFailed as failed:
            _leave_out(failed, scope)
        else:
            if kind in _DRAWN:
                yield from drawingml.read(root)
            else:
                notes += _notes(root) if kind == "notesSlide" else _comments(root)
    yield from notes


def _leave_out(failed: ExtractionFailed, scope: Scope) -> None:
    """Goes on without a part that is damaged. Raises ExtractionFailed again where the whole file is too large."""
    if failed.reason is Reason.TOO_LARGE:
        raise failed
    scope.notice(Notice.PARTS_UNREAD)


def _notes(root: Any) -> Iterator[Element]:
    for node in root.iter(f"{_P}sp"):
        placeholder = node.find(f"{_P}nvSpPr/{_P}nvPr/{_P}ph")
        body = node.find(f"{_P}txBody")
        if body is not None and placeholder is not None and placeholder.get("type") == "body":
            for text in paragraphs(body):
                yield Element(Category.NARRATIVE_TEXT, text)
    for table in root.iter(f"{_A}tbl"):
        yield from _table(table)


def _comments(root: Any) -> Iterator[Element]:
    texts = [clean(node.text or "") for node in root.iter(f"{_P}text")] or paragraphs(root)
    for text in texts:
        if text:
            yield Element(Category.UNCATEGORIZED_TEXT, f"Comment: {text}")


def _slide(package: Package, part: str, scope: Scope) -> list[Element]:
    """Nothing where the slide is damaged: it keeps its place all the same."""
    relations = package.relations(part)

    def picture(node: Any) -> Iterator[Element]:
        for blip in node.iter(f"{_A}blip"):
            yield from package.picture(relations.get(str(blip.get(f"{_R}embed")), ("", ""))[1])

    try:
        root = package.xml(part)
    except ExtractionFailed as failed:
        _leave_out(failed, scope)
        return []
    tree, ground = root.find(f"{_P}cSld/{_P}spTree"), root.find(f"{_P}cSld/{_P}bg")
    elements = list(_shapes(tree, picture)) if tree is not None else []
    elements += picture(ground) if ground is not None else ()
    titles = [element for element in elements if element.category is Category.TITLE]
    rest = [element for element in elements if element.category is not Category.TITLE]
    if root.get("show") in _NO:
        rest.append(Element(Category.UNCATEGORIZED_TEXT, "This slide is hidden."))
    return [*titles, *rest, *_beside(package, part, scope)]


def read(file: BinaryIO, scope: Scope) -> Content:
    """Raises ExtractionFailed."""
    package = Package(file, scope)
    parts = _slide_parts(package)
    if not parts:
        raise ExtractionFailed(Reason.EMPTY if "ppt/presentation.xml" in package.names else Reason.DAMAGED)
    sections = as_slides(_slide(package, part, scope) for part in parts)
    if not any(sections) and Notice.PARTS_UNREAD in scope.spent.notices:
        raise ExtractionFailed(Reason.DAMAGED)
    for name in sorted(name for name in package.names if name.startswith("ppt/embeddings/")):
        sections += scope.inside(posixpath.basename(name), lambda name=name: package.read(name))  # type: ignore[misc]
    return Content(sections, package.title())
