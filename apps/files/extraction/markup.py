"""HTML: headings, paragraphs, lists, tables and code in the order of the text.

Also reads the chapters of books and the bodies of mails. Tables that only arrange a page are read as what they
arrange. What a browser would not show is left out.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO

from lxml import etree, html

from apps.files.extraction import charsets, plain
from apps.files.extraction.assemble import clean
from apps.files.extraction.content import Content, Scope, bounded, parted, table_text
from apps.files.extraction.types import HEADING_MAX_CHARS, Category, Element, ExtractionFailed, Reason

_SKIPPED = frozenset(
    """
    script style noscript template head title desc defs metadata annotation annotation-xml iframe object embed canvas
    audio video select datalist rt rp
    """.split()  # noqa: SIM905
)
_BLOCKS = frozenset(
    """
    address article aside blockquote body center dd details dialog div dl dt fieldset figcaption figure footer form
    h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main nav ol p pre section summary table tbody td tfoot th
    thead tr ul
    """.split()  # noqa: SIM905
)
_ARRANGED = frozenset("table h1 h2 h3 h4 h5 h6 ul ol form img".split())  # noqa: SIM905
_IMAGES = ("img", "image")
_HEADING = re.compile(r"^h[1-6]$")
_CHARSET = re.compile(
    rb"""<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding)\s*=\s*["']?\s*([\w-]{2,30})""", re.IGNORECASE
)
_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
_HIDDEN = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|mso-hide\s*:\s*all|(?:font-size|opacity)\s*:\s*0(?:\.0+)?(?:[a-z%]{1,3})?\s*(?:;|!|$)",
    re.IGNORECASE,
)
_MAX_ROWS, _MAX_SPAN = 100_000, 200
_REPEATED = 80  # characters; longer cells are not said twice
_MAX_NESTING = 240  # below what libxml2 itself refuses


def decode(data: bytes) -> str:
    """The text, by its mark, its own declaration, or a guess."""
    declared = _CHARSET.search(data[:4096])
    if declared and not data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        text = charsets.by_declaration(data, declared.group(1).decode("ascii"))
        if text is not None:
            return text
    return plain.decode(data)


def _hidden(node: Any) -> bool:
    return node.get("hidden") is not None or bool(_HIDDEN.search(node.get("style") or ""))


def _joined(parts: list[str]) -> str:
    return "\n".join(line for part in "".join(parts).split("\n") if (line := clean(part)))


def _raw(node: Any) -> str:
    return "".join(node.itertext())


Picture = Callable[[str], list[Element]]


class _Walk:
    """One pass over a tree. `_parts` is the text of the block that is being collected; `picture` gives the picture at
    an address."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._parts: list[str] = []
        self._category = Category.NARRATIVE_TEXT
        self._level: int | None = None

    def _flush(self) -> Iterator[Element]:
        text = _joined(self._parts)
        self._parts.clear()
        if text:
            category, level = self._category, self._level
            if category is Category.TITLE and len(text) > HEADING_MAX_CHARS:
                category, level = Category.NARRATIVE_TEXT, None
            yield Element(category, text.replace("\n", " ") if category is Category.TITLE else text, level=level)

    def elements(self, node: Any, depth: int = 0) -> Iterator[Element]:
        tag = node.tag
        if tag == "select" and not _hidden(node):
            self._add(_chosen(node))
        if not isinstance(tag, str) or tag in _SKIPPED or depth > _MAX_NESTING or _hidden(node):
            return
        if tag not in _BLOCKS:
            yield from self._inline(node, depth)
            return
        yield from self._flush()
        if tag == "pre":
            if code := _raw(node).strip("\n").rstrip():
                yield Element(Category.CODE_SNIPPET, plain.printable(code))
        elif tag == "table" and not _arranges(node):
            yield from _table(node)
            for picture in filter(_is_shown, node.iter(*_IMAGES)):
                yield from self._picture(_address(picture))
        else:
            yield from self._block(node, depth)

    def _block(self, node: Any, depth: int) -> Iterator[Element]:
        before = self._category, self._level
        self._category, self._level = self._kind(node.tag)
        yield from self._children(node, depth)
        yield from self._flush()
        self._category, self._level = before

    def _kind(self, tag: str) -> tuple[Category, int | None]:
        if _HEADING.match(tag):
            return Category.TITLE, int(tag[1])
        if tag == "li":
            return Category.LIST_ITEM, None
        if tag in ("figcaption", "caption"):
            return Category.FIGURE_CAPTION, None
        if tag in ("footer", "nav"):
            return (Category.FOOTER if tag == "footer" else Category.HEADER), None
        if tag in ("body", "article", "main", "section"):
            return Category.NARRATIVE_TEXT, None
        return self._category, self._level

    def _children(self, node: Any, depth: int) -> Iterator[Element]:
        self._add(node.text)
        for child in node:
            yield from self.elements(child, depth + 1)
            self._add(child.tail)

    def _inline(self, node: Any, depth: int) -> Iterator[Element]:
        if node.tag == "br":
            self._parts.append("\n")
        elif node.tag in _IMAGES:
            if alternative := clean(node.get("alt") or ""):
                self._parts.append(f" {alternative} ")
            if found := self._picture(_address(node)):
                yield from self._flush()
                yield from found
        elif node.tag in ("input", "button") and node.get("type") not in ("hidden", "password"):
            self._add(f" {node.get('value') or ''} ")
        yield from self._children(node, depth)

    def _add(self, text: str | None) -> None:
        if text:
            self._parts.append(re.sub(r"\s+", " ", text))


def _address(image: Any) -> str:
    return image.get("src") or image.get("xlink:href") or ""


def _is_shown(node: Any) -> bool:
    return not _hidden(node) and not any(map(_hidden, node.iterancestors()))


def _chosen(node: Any) -> str:
    """What a list shows: the options that are chosen in it, else nothing."""
    return "".join(f" {_raw(option)} " for option in node.iter("option") if option.get("selected") is not None)


def _arranges(table: Any) -> bool:
    """Whether the table is there for the look of the page: it holds blocks, or has one column. One that names its
    columns or rows is not, if there is none inside."""
    if (table.get("role") or "").lower() == "presentation":
        return True
    cells = [sum(1 for cell in row if cell.tag in ("td", "th")) for row in table.iter("tr")]
    if max(cells, default=0) < 2:
        return True
    if next(table.iterdescendants("table"), None) is None and next(_own(table, "th"), None) is not None:
        return False
    return 2 * sum(map(_is_arranged, table.iterdescendants())) > sum(cells)


def _is_arranged(node: Any) -> bool:
    """A block; also one of several `div`, while a single one only wraps what a cell holds."""
    return node.tag in _ARRANGED or (node.tag == "div" and len(node.getparent()) > 1)


def _table(table: Any) -> Iterator[Element]:
    """The rows that are the table's own, each cell that spans several repeated; tables inside follow it."""
    if (caption := table.find("caption")) is not None and (text := clean(_raw(caption))):
        yield Element(Category.FIGURE_CAPTION, text)
    rows = [row for row in _own(table, "tr") if not _hidden(row)]
    inner: list[Any] = []
    grid: list[list[str]] = []
    below: dict[int, tuple[int, str]] = {}  # column: rows that a cell still reaches down, and its text
    for row in rows[:_MAX_ROWS]:
        texts: list[str] = []
        for cell in row:
            if cell.tag in ("td", "th"):
                _fill(texts, below)
                text = clean(_spaced(cell))
                inner += (nested for nested in _own(cell, "table") if not _hidden(nested))
                wide, tall = _span(cell, "colspan"), _span(cell, "rowspan")
                for at in range(wide):
                    shown = text if at == 0 or len(text) <= _REPEATED else ""
                    if tall > 1:
                        below[len(texts)] = (tall - 1, shown)
                    texts.append(shown)
        _fill(texts, below)
        grid.append(texts)
    if text := table_text(grid):
        yield Element(Category.TABLE, text)
    for nested in inner:
        yield from _table(nested)


def _fill(texts: list[str], below: dict[int, tuple[int, str]]) -> None:
    """Cells that reach down from the rows above into the next columns."""
    while (column := len(texts)) in below:
        left, text = below.pop(column)
        if left > 1:
            below[column] = (left - 1, text)
        texts.append(text if len(text) <= _REPEATED else "")


def _span(cell: Any, name: str) -> int:
    value = (cell.get(name) or "").strip()
    return min(int(value), _MAX_SPAN) if value.isascii() and value.isdigit() and int(value[:6]) > 0 else 1


def _own(node: Any, tag: str) -> Iterator[Any]:
    """What is below `node` but not inside a table that is."""
    stack = [iter(node)]
    while stack:
        child = next(stack[-1], None)
        if child is None:
            stack.pop()
        elif child.tag == tag:
            yield child
        elif child.tag != "table":
            stack.append(iter(child))


def _spaced(node: Any) -> str:
    """The visible text of a cell without that of tables inside it."""
    parts = [node.text or ""]
    for child in node:
        if child.tag == "img":
            parts.append(f" {child.get('alt') or ''} ")
        elif isinstance(child.tag, str) and child.tag != "table" and child.tag not in _SKIPPED and not _hidden(child):
            inner = _spaced(child)
            parts.append(f" {inner} " if child.tag in _BLOCKS or child.tag == "br" else inner)
        parts.append(child.tail or "")
    return "".join(parts)


def written_out(scope: Scope, address: str) -> list[Element]:
    """The picture that an address holds itself."""
    head, _, data = address.partition(",")
    if not head.startswith("data:image/") or not head.endswith(";base64"):
        return []
    return scope.picture(len(data) * 3 // 4, lambda: _unpacked(data))


def _unpacked(data: str) -> bytes:
    """Raises ExtractionFailed."""
    try:
        return b64decode(data + "==")
    except ValueError as error:
        raise ExtractionFailed(Reason.DAMAGED) from error


def elements_of(text: str, picture: Picture = lambda address: []) -> tuple[list[Element], str]:
    """Elements of an HTML text in order, and its title. `picture` gives the picture at an address. Raises
    ExtractionFailed when there is no tree in it."""
    parser = html.HTMLParser(no_network=True, remove_comments=True, remove_pis=True)
    try:
        root = html.document_fromstring(plain.printable(_DECLARATION.sub("", text)), parser=parser)
    except (etree.LxmlError, ValueError) as error:
        raise ExtractionFailed(Reason.EMPTY) from error
    titles = [clean(title.text_content()) for title in root.iter("title")]
    walk = _Walk(picture)
    return list(bounded(walk.elements(root))), (titles[0] if titles else "")[:HEADING_MAX_CHARS]


def read(file: BinaryIO, scope: Scope) -> Content:
    elements, title = elements_of(decode(file.read()), partial(written_out, scope))
    return Content(parted(elements), title)
