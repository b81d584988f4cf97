"""EPUB: the chapters of a book in the order of its spine, a section each."""

from __future__ import annotations

import posixpath
from functools import partial
from typing import Any, BinaryIO
from urllib.parse import unquote

from apps.files.extraction import markup
from apps.files.extraction.assemble import clean
from apps.files.extraction.content import Content, Package, Scope, parted
from apps.files.extraction.types import HEADING_MAX_CHARS, Element, ExtractionFailed, Notice, Reason

_CONTAINER, _PROTECTION = "META-INF/container.xml", "META-INF/encryption.xml"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_TEXTS = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")


def _protected(package: Package) -> set[str]:
    """The parts that are encrypted: fonts often are, chapters only where a shop protects its books."""
    if (root := package.find_xml(_PROTECTION)) is None:
        return set()
    return {unquote(node.get("URI") or "") for node in root.iter("{*}CipherReference")}


def _chapters(contents: Any, folder: str) -> list[str]:
    """Paths of the chapters in the order of the spine; of all texts in that of the list where there is no spine."""
    items = {
        node.get("id"): posixpath.normpath(posixpath.join(folder, unquote(node.get("href") or "").partition("#")[0]))
        for node in contents.iter("{*}item")
    }
    spine = [items.get(node.get("idref"), "") for node in contents.iter("{*}itemref")]
    return spine or [items[node.get("id")] for node in contents.iter("{*}item") if node.get("media-type") in _TEXTS]


def _member(package: Package, named: dict[str, str], path: str) -> str:
    """The member that a path means, by its name in small letters where it is written otherwise."""
    return path if path in package.names else named.get(path.lower(), "")


def _picture(package: Package, named: dict[str, str], chapter: str, scope: Scope, address: str) -> list[Element]:
    """The picture at an address that a chapter names: inside the book, or written out there."""
    if address.startswith("data:"):
        return markup.written_out(scope, address)
    path = posixpath.normpath(posixpath.join(posixpath.dirname(chapter), unquote(address)))
    return package.picture(_member(package, named, path))


def read(file: BinaryIO, scope: Scope) -> Content:
    """Raises ExtractionFailed."""
    package = Package(file, scope)
    root = next((str(node.get("full-path")) for node in package.xml(_CONTAINER).iter("{*}rootfile")), "")
    contents = package.xml(root)
    named = {name.lower(): name for name in sorted(package.names)}  # books are made where case does not matter
    protected = _protected(package)
    sections: list[list[Element]] = []
    for chapter in _chapters(contents, posixpath.dirname(root)):
        path = _member(package, named, chapter)
        if path in protected:
            raise ExtractionFailed(Reason.LOCKED)
        try:
            picture = partial(_picture, package, named, path, scope)
            elements, _ = markup.elements_of(markup.decode(package.read(path)), picture)
        except ExtractionFailed as failed:
            if failed.reason is Reason.TOO_LARGE:
                raise
            scope.notice(Notice.PARTS_UNREAD)
        else:
            sections += parted(elements)
    title = next((clean(node.text or "") for node in contents.iter(_TITLE)), "")
    return Content([section for section in sections if section], title[:HEADING_MAX_CHARS])
