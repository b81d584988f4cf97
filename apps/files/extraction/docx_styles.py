"""What the styles of a Word document make of its paragraphs: headings, list items, captions, code."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from apps.files.extraction.docx_numbers import Place, W, place_of
from apps.files.extraction.types import Category

PROPERTIES = f"{W}pPr"
_VALUE = f"{W}val"
_MAX_DEPTH = 12
_HEADING = re.compile(r"^(?:heading|überschrift|titre|título|titolo|заголовок)\s*(\d)", re.IGNORECASE)
_LIST = re.compile(r"^list\b|aufzählung|liste", re.IGNORECASE)
_CODE = re.compile(r"code|html preformatted|source|macro", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Style:
    """`place`: the list that its paragraphs count in."""

    category: Category = Category.NARRATIVE_TEXT
    level: int | None = None
    place: Place | None = None


class Styles:
    """Styles of paragraphs by their id, following what they are based on."""

    def __init__(self, root: Any | None) -> None:
        nodes = root.iterfind(f"{W}style") if root is not None else ()
        self._nodes = {node.get(f"{W}styleId"): node for node in nodes if node.get(f"{W}type") == "paragraph"}
        self._known: dict[str | None, Style] = {}

    def of(self, properties: Any | None) -> Style:
        """What the properties of a paragraph say themselves, else its style."""
        if properties is None:
            return Style()
        style = self._named(_value(properties, "pStyle"))
        own, level = place_of(properties), outline_level(properties)
        if own is not None and style.place is not None and not own.number:
            own = replace(own, number=style.place.number)
        style = replace(style, place=own or style.place)
        if level is not None:
            return replace(style, category=Category.TITLE, level=level)
        if style.category is Category.NARRATIVE_TEXT and style.place is not None and style.place.number != "0":
            return replace(style, category=Category.LIST_ITEM)
        return style

    def _named(self, style_id: str | None) -> Style:
        if style_id not in self._known:
            self._known[style_id] = self._look_up(style_id)
        return self._known[style_id]

    def _look_up(self, style_id: str | None) -> Style:
        node, place = self._nodes.get(style_id), None
        for _ in range(_MAX_DEPTH):
            if node is None:
                break
            properties = node.find(PROPERTIES)
            place = place or place_of(properties)
            meant = _meant(_value(node, "name") or "", outline_level(properties))
            if meant is not None:
                return replace(meant, place=place or self._inherited(node))
            node = self._nodes.get(_value(node, "basedOn"))
        return Style(place=place)

    def _inherited(self, node: Any) -> Place | None:
        """The list of the styles that this one is based on."""
        for _ in range(_MAX_DEPTH):
            node = self._nodes.get(_value(node, "basedOn"))
            if node is None:
                break
            if (place := place_of(node.find(PROPERTIES))) is not None:
                return place
        return None


def _meant(name: str, level: int | None) -> Style | None:
    """What the name of a style says, or the level it has in an outline."""
    if found := _HEADING.match(name):
        return Style(Category.TITLE, max(1, int(found.group(1))))
    if level is not None:
        return Style(Category.TITLE, level)
    if name.lower() in ("title", "titel", "titre"):
        return Style(Category.TITLE, 1)
    if name.lower() == "caption":
        return Style(Category.FIGURE_CAPTION)
    if _LIST.match(name):
        return Style(Category.LIST_ITEM)
    return Style(Category.CODE_SNIPPET) if _CODE.search(name) else None


def _value(node: Any, name: str) -> str | None:
    found = node.find(f"{W}{name}")
    return str(found.get(_VALUE)) if found is not None else None


def outline_level(properties: Any | None) -> int | None:
    value = (_value(properties, "outlineLvl") or "9") if properties is not None else "9"
    return int(value) + 1 if value.isascii() and value.isdigit() and int(value) < 9 else None
