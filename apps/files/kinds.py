"""Kinds of files that can be read, and what endings and media types they have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Literal, cast, get_args

Kind = Literal[
    "pdf", "docx", "pptx", "sheet", "csv", "html", "eml", "msg", "doc", "ppt", "rtf", "epub", "odt", "odp", "zip",
    "image", "text", "markdown", "code",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)

_OFFICE = "application/vnd.openxmlformats-officedocument"
_OPEN = "application/vnd.oasis.opendocument"
_CODE = """
.py .pyi .js .mjs .cjs .jsx .ts .tsx .java .kt .kts .scala .groovy .c .h .cc .cpp .cxx .hh .hpp .cs .go .rs .rb .php
.pl .pm .lua .r .jl .swift .m .mm .dart .ex .exs .erl .hs .ml .clj .lisp .el .vim .sh .bash .zsh .fish .ps1 .bat .sql
.css .scss .less .vue .svelte .proto .graphql .tf .gradle .cmake .mk .tex .bib
.json .jsonl .ndjson .geojson .ipynb .xml .xsd .xsl .yaml .yml .toml .ini .cfg .conf .properties .env .diff .patch
""".split()  # noqa: SIM905
ENDINGS: Mapping[str, tuple[Kind, str]] = {
    ".pdf": ("pdf", "application/pdf"),
    ".docx": ("docx", f"{_OFFICE}.wordprocessingml.document"),
    ".docm": ("docx", "application/vnd.ms-word.document.macroenabled.12"),
    ".dotx": ("docx", f"{_OFFICE}.wordprocessingml.template"),
    ".dotm": ("docx", "application/vnd.ms-word.template.macroenabled.12"),
    ".pptx": ("pptx", f"{_OFFICE}.presentationml.presentation"),
    ".pptm": ("pptx", "application/vnd.ms-powerpoint.presentation.macroenabled.12"),
    ".ppsx": ("pptx", f"{_OFFICE}.presentationml.slideshow"),
    ".ppsm": ("pptx", "application/vnd.ms-powerpoint.slideshow.macroenabled.12"),
    ".potx": ("pptx", f"{_OFFICE}.presentationml.template"),
    ".potm": ("pptx", "application/vnd.ms-powerpoint.template.macroenabled.12"),
    ".xlsx": ("sheet", f"{_OFFICE}.spreadsheetml.sheet"),
    ".xlsm": ("sheet", "application/vnd.ms-excel.sheet.macroenabled.12"),
    ".xltx": ("sheet", f"{_OFFICE}.spreadsheetml.template"),
    ".xltm": ("sheet", "application/vnd.ms-excel.template.macroenabled.12"),
    ".xlsb": ("sheet", "application/vnd.ms-excel.sheet.binary.macroenabled.12"),
    ".xls": ("sheet", "application/vnd.ms-excel"),
    ".ods": ("sheet", f"{_OPEN}.spreadsheet"),
    ".csv": ("csv", "text/csv"),
    ".tsv": ("csv", "text/tab-separated-values"),
    ".html": ("html", "text/html"),
    ".htm": ("html", "text/html"),
    ".xhtml": ("html", "application/xhtml+xml"),
    ".svg": ("html", "text/plain"),
    ".eml": ("eml", "message/rfc822"),
    ".emlx": ("eml", "message/rfc822"),
    ".mbox": ("eml", "application/mbox"),
    ".mht": ("eml", "multipart/related"),
    ".mhtml": ("eml", "multipart/related"),
    ".msg": ("msg", "application/vnd.ms-outlook"),
    ".doc": ("doc", "application/msword"),
    ".ppt": ("ppt", "application/vnd.ms-powerpoint"),
    ".rtf": ("rtf", "application/rtf"),
    ".epub": ("epub", "application/epub+zip"),
    ".odt": ("odt", f"{_OPEN}.text"),
    ".odp": ("odp", f"{_OPEN}.presentation"),
    ".zip": ("zip", "application/zip"),
    ".tar": ("zip", "application/x-tar"),
    ".tgz": ("zip", "application/gzip"),
    ".gz": ("zip", "application/gzip"),
    ".bz2": ("zip", "application/x-bzip2"),
    ".xz": ("zip", "application/x-xz"),
    ".txt": ("text", "text/plain"),
    ".text": ("text", "text/plain"),
    ".log": ("text", "text/plain"),
    **dict.fromkeys((".rst", ".adoc", ".org", ".srt", ".vtt", ".ics", ".vcf"), ("text", "text/plain")),
    ".md": ("markdown", "text/markdown"),
    ".markdown": ("markdown", "text/markdown"),
    ".png": ("image", "image/png"),
    ".jpg": ("image", "image/jpeg"),
    ".jpeg": ("image", "image/jpeg"),
    ".tif": ("image", "image/tiff"),
    ".tiff": ("image", "image/tiff"),
    ".webp": ("image", "image/webp"),
    ".heic": ("image", "image/heic"),
    ".heif": ("image", "image/heif"),
    ".gif": ("image", "image/gif"),
    ".bmp": ("image", "image/bmp"),
    **dict.fromkeys(_CODE, ("code", "text/plain")),
}
"""What a name's ending says, as kind and media type."""

UNLOCKABLE: frozenset[Kind] = frozenset({"pdf", "docx", "pptx", "sheet", "doc", "ppt", "odt", "odp", "zip"})
"""Kinds that can be opened with a password."""
DRAWN: frozenset[Kind] = frozenset({"pdf", "image"})
"""Kinds whose pages can be drawn."""


def kind_of(name: str) -> Kind | None:
    known = ENDINGS.get(PurePosixPath(name).suffix.lower())
    return known[0] if known else None


def as_kind(value: str) -> Kind:
    """A kind read from a row. Raises ValueError for a value that this version does not know."""
    return KINDS[KINDS.index(cast(Kind, value))]
