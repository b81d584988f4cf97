"""ZIP archives: every file inside, read as what it is, under its name."""

from __future__ import annotations

from typing import BinaryIO

from apps.files.extraction.content import Content, Package, Scope
from apps.files.extraction.types import Element

_LITTER = ("__MACOSX/", ".DS_Store", "Thumbs.db")


def read(file: BinaryIO, scope: Scope) -> Content:
    """Raises ExtractionFailed."""
    package = Package(file, scope)
    sections: list[list[Element]] = []
    for member in package.members:
        name = member.filename
        if not member.is_dir() and not name.startswith(_LITTER) and not name.endswith(_LITTER):
            sections += scope.inside(name, lambda name=name: package.read(name))  # type: ignore[misc]
    return Content(sections)
