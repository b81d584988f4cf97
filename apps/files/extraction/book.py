"""EPUB: the chapters of a book in the order of its spine, a section each."""

from __future__ import annotations

import posixpath
from functools import partial
from typing import BinaryIO
from urllib.parse import unquote

from apps.files.extraction import markup
from apps.files.extraction.assemble import clean
from apps.files.extraction.content import Content, Package, Scope, parted
from apps.files.extraction.types import HEADING_MAX_CHARS, Element, ExtractionFailed, Notice, Reason

_CONTAINER = "META-INF/container.xml"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"


def _picture(package: Package, chapter: str, scope: Scope, address: str) -> list[Element]:
    """The picture at an address that a chapter names: inside the book, or written out there."""
    if address.startswith("data:"):
        return markup.written_out(scope, address)
    path = posixpath.normpath(posixpath.join(posixpath.dirname(chapter), unquote(address)))
    return package.picture(path)


def read(file: BinaryIO, scope: Scope) -> Content:
    """Raises ExtractionFailed."""
    package = Package(file, scope)
    root = next((str(node.get("full-path")) for node in package.xml(_CONTAINER).iter("{*}rootfile")), "")
    contents = package.xml(root)
    folder = posixpath.dirname(root)
    paths = {
        node.get("id"): posixpath.normpath(posixpath.join(folder, unquote(node.get("href") or "")))
        for node in contents.iter("{*}item")
    }
    sections: list[list[Element]] = []
    for node in contents.iter("{*}itemref"):
        path = paths.get(node.get("idref"), "")
        try:
            picture = partial(_picture, package, path, scope)
            elements, _ = markup.elements_of(markup.decode(package.read(path)), picture)
        except ExtractionFailed as failed:
            if failed.reason is Reason.TOO_LARGE:
                raise
            scope.notice(Notice.PARTS_UNREAD)
        else:
            sections += parted(elements)
    title = next((clean(node.text or "") for node in contents.iter(_TITLE)), "")
    return Content([section for section in sections if section], title[:HEADING_MAX_CHARS])
