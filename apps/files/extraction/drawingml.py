"""Charts, diagrams and drawn shapes of Office documents, as what they say: tables and lines of text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from apps.files.extraction.assemble import clean
from apps.files.extraction.content import table_text
from apps.files.extraction.types import Category, Element

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_DGM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_MAX_POINTS, _MAX_SERIES = 5_000, 100
_SCAFFOLD = frozenset({"pres", "parTrans", "sibTrans"})
_WHOLE = re.compile(r"^(-?\d+)\.0+$")


def paragraph_text(node: Any) -> str:
    """The lines of a paragraph; a break is a line's end."""
    marks = {f"{A}br": "\n", f"{A}tab": " "}
    parts = [marks.get(run.tag) or run.text or "" for run in node.iter(f"{A}t", *marks)]
    return "\n".join(line for part in "".join(parts).split("\n") if (line := clean(part)))


def paragraphs(node: Any) -> list[str]:
    return [text for part in node.iter(f"{A}p") if (text := paragraph_text(part))]


def _said(node: Any | None) -> str:
    """The text of a title or a name, written out or kept from the cells it comes from."""
    if node is None:
        return ""
    texts = paragraphs(node) or [clean(value.text or "") for value in node.iter(f"{C}v")]
    return " ".join(text for text in texts if text).replace("\n", " ")


def _points(node: Any | None) -> dict[int, str]:
    """Values by their place. Of categories in levels, the finest."""
    if node is None:
        return {}
    level = next(node.iter(f"{C}lvl"), None)
    found: dict[int, str] = {}
    for point in islice((node if level is None else level).iter(f"{C}pt"), _MAX_POINTS):
        place = point.get("idx", "")
        if place.isdigit() and int(place) < _MAX_POINTS:
            found[int(place)] = _WHOLE.sub(r"\1", clean(point.findtext(f"{C}v") or ""))
    return found


def chart(root: Any) -> list[Element]:
    """The title of a chart, and its values as a table: a row a category, a column a series."""
    title = _said(root.find(f"{C}chart/{C}title"))
    axes = [_said(axis) for kind in ("catAx", "dateAx", "valAx") for axis in root.iterfind(f".//{C}{kind}/{C}title")]
    names, columns, categories = [], [], dict[int, str]()
    for series in islice(root.iter(f"{C}ser"), _MAX_SERIES):
        names.append(_said(series.find(f"{C}tx")))
        for kind in ("cat", "xVal"):
            categories = categories or _points(series.find(f"{C}{kind}"))
        value = series.find(f"{C}val")
        columns.append(_points(series.find(f"{C}yVal") if value is None else value))
    places = sorted({place for column in (categories, *columns) for place in column})
    rows = [[categories.get(place, ""), *(column.get(place, "") for column in columns)] for place in places]
    elements = []
    if caption := ", ".join(text for text in (title, *axes) if text):
        elements.append(Element(Category.FIGURE_CAPTION, f"Chart: {caption}"))
    if rows and (text := table_text([["", *names], *rows] if any(names) else rows)):
        elements.append(Element(Category.TABLE, text))
    return elements


def diagram(root: Any) -> Iterator[Element]:
    """The texts of a diagram (SmartArt), in the order they were written."""
    for point in root.iter(f"{_DGM}pt"):
        if point.get("type") not in _SCAFFOLD and (text := " ".join(paragraphs(point)).replace("\n", " ")):
            yield Element(Category.LIST_ITEM, text)


def read(root: Any) -> list[Element]:
    """What a part is by its root: a chart, a diagram, or shapes with text."""
    if root.tag == f"{C}chartSpace":
        return chart(root)
    if root.tag == f"{_DGM}dataModel":
        return list(diagram(root))
    return [Element(Category.NARRATIVE_TEXT, text) for text in paragraphs(root)]
