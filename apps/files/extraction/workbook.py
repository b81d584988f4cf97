"""What a workbook (XLSX) has besides the values of its cells: comments, charts, drawn texts, formulas without a result.

The values themselves are read by `sheets`. Results that are errors, and formulas that no program has computed yet, are
written into the cells first, because the reader of values leaves them out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from html import unescape
from typing import Any

from apps.files.extraction import drawingml
from apps.files.extraction.assemble import clean
from apps.files.extraction.content import Package, Scope, closed_xml
from apps.files.extraction.types import Category, Element, ExtractionFailed, Notice

_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_THREADED = "{http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments}"
CONTENT = "content.xml"  # of OpenDocument
_SHEET = re.compile(r"^xl/worksheets/[^/]+\.xml$")
_MAX_COMMENTS, _MAX_DRAWN = 5_000, 200
_LARGEST = 64 << 20
_LARGEST_EDGED = 8 << 20  # sheets whose headers and footers are looked for
_EDGE = re.compile(rb"<(?:\w+:)?(?:odd|even|first)(Header|Footer)\b[^>]{0,100}>([^<]{1,2000})<")
_CODES = re.compile(r"&(?:(&)|\"[^\"]*\"|K[0-9A-Fa-f]{6}|\d+|.)", re.DOTALL)
_CELL = re.compile(rb"<c\b([^>]*?)>(\s*<f\b[^>]*?(?:/>|>([^<]*)</f>))\s*(?:<v\s*/>|<v>\s*</v>)?\s*</c>")
_ERROR = re.compile(rb"(<c\b[^>]*?\bt=\")e\"")
_TYPE = re.compile(rb"\s+t=\"[^\"]*\"")


def prepared(data: bytes, package: Package, scope: Scope) -> bytes:
    """The workbook with errors as texts, and with formulas themselves where they have no result; ODS with its elements
    closed, since calamine reads on for ever in one that breaks off. Raises ExtractionFailed."""
    if CONTENT in package.names:
        whole = closed_xml(package.read(CONTENT))
        if whole is None:
            return data
        scope.notice(Notice.CUT_SHORT)
        return package.repacked({CONTENT: whole})
    changed: dict[str, bytes] = {}
    for member in package.members:
        if _SHEET.match(member.filename) and member.file_size <= _LARGEST:
            sheet = package.read(member.filename)
            if b't="e"' in sheet or b"<f" in sheet:
                after = _CELL.sub(_with_formula, _ERROR.sub(rb'\1str"', sheet))
                if after != sheet:
                    changed[member.filename] = after
    return package.repacked(changed) if changed else data


def _with_formula(found: re.Match[bytes]) -> bytes:
    formula = (found.group(3) or b"").strip()
    if not formula:
        return found.group()
    attributes = _TYPE.sub(b"", found.group(1))
    return b'<c%b t="str">%b<v>=%b</v></c>' % (attributes, found.group(2), formula)


def beside(package: Package) -> dict[str, list[Element]]:
    """Elements that stand beside the cells of each sheet, by its name. What is damaged is left out."""
    found: dict[str, list[Element]] = {}
    try:
        paths = {identity: path for identity, (_, path) in package.relations("xl/workbook.xml").items()}
        sheets = list(package.xml("xl/workbook.xml").iter(f"{_S}sheet"))
    except ExtractionFailed:
        return found
    for sheet in sheets:
        name, path = str(sheet.get("name")), paths.get(str(sheet.get(f"{_R}id")), "")
        elements = (
            [Element(Category.UNCATEGORIZED_TEXT, "This sheet is hidden.")] if sheet.get("state") in _HIDDEN else []
        )
        with suppress(ExtractionFailed):
            elements += _of_sheet(package, path)
        found[name] = elements
    return found


_HIDDEN = ("hidden", "veryHidden")


def _of_sheet(package: Package, path: str) -> Iterator[Element]:
    if path.startswith("xl/chartsheets/"):
        yield from _drawn(package, path)
    comments: dict[str, str] = {}
    for kind, target in sorted(package.relations(path).values()):
        if target not in package.names:
            continue
        if kind == "comments":
            comments |= _comments(package.xml(target))
        elif kind == "threadedComment":
            comments |= _threads(package.xml(target))
        elif kind == "drawing":
            yield from _shapes(package, target)
    for _, (place, text) in zip(range(_MAX_COMMENTS), comments.items(), strict=False):
        yield Element(Category.UNCATEGORIZED_TEXT, f"Comment on {place}: {text}")
    yield from _edges(package, path)


def _edges(package: Package, path: str) -> Iterator[Element]:
    """What is printed above and below a sheet, each text once, without the codes for fonts and numbers of pages."""
    if package.size(path) > _LARGEST_EDGED:
        return
    kinds = {b"Header": Category.HEADER, b"Footer": Category.FOOTER}
    seen = set()
    for kind, coded in _EDGE.findall(package.read(path)):
        parts = re.split("&[LCR]", unescape(coded.decode("utf-8", "replace")))
        text = " | ".join(
            words for part in parts if (words := clean(_CODES.sub(lambda code: code.group(1) or "", part)))
        )
        if text and text not in seen:
            seen.add(text)
            yield Element(kinds[kind], text)


def _comments(root: Any) -> dict[str, str]:
    texts = (
        (node.get("ref", ""), clean("".join(t.text or "" for t in node.iter(f"{_S}t"))))
        for node in root.iter(f"{_S}comment")
    )
    return {place: text for place, text in texts if text}


def _threads(root: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in root.iter(f"{_THREADED}threadedComment"):
        text = clean(node.findtext(f"{_THREADED}text") or "")
        place = node.get("ref", "")
        found[place] = f"{found[place]} — {text}" if place in found else text
    return found


def _shapes(package: Package, path: str) -> Iterator[Element]:
    yield from drawingml.read(package.xml(path))
    yield from _drawn(package, path)


def _drawn(package: Package, path: str) -> Iterator[Element]:
    for _, (kind, target) in zip(range(_MAX_DRAWN), package.relations(path).values(), strict=False):
        if target in package.names and kind in ("chart", "diagramData"):
            yield from drawingml.read(package.xml(target))
        elif kind == "image":
            yield from package.picture(target)
        elif target in package.names and kind == "drawing":
            yield from _shapes(package, target)
