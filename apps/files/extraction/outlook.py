"""Outlook's messages (MSG): head, body and attachments, which are kept as properties in an OLE container.

Names of properties and their types are those of [MS-OXMSG] and [MS-OXPROPS]; compressed RTF is [MS-OXRTFCP].
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO

import olefile

from apps.files.extraction import mail, markup, plain, rtf
from apps.files.extraction.assemble import clean
from apps.files.extraction.content import Content, Scope, of_part, opened_ole
from apps.files.extraction.types import HEADING_MAX_CHARS, Element, ExtractionFailed, Reason
from apps.files.types import BODY

_SUBJECT, _BODY, _HTML, _RTF = 0x0037, 0x1000, 0x1013, 0x1009
_SENDER, _SENDER_ADDRESS, _TO, _CC, _BCC = 0x0C1A, 0x0C1F, 0x0E04, 0x0E03, 0x0E02
_DATA, _LONG_NAME, _SHORT_NAME, _SHOWN_NAME = 0x3701, 0x3707, 0x3704, 0x3001
_SUBMITTED, _DELIVERED = 0x0039, 0x0E06
_CODE_PAGES = (0x3FFD, 0x3FDE)
_PROPERTIES = "__properties_version1.0"
_EPOCH = datetime.datetime(1601, 1, 1, tzinfo=datetime.UTC)
# What the dictionary of compressed RTF begins with.
_DICTIONARY = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans Serif"
    rb"SymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
    b"\r\n"
    rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)
_RING = 4096
_MAX_RTF = 64 << 20


class _Storage:
    """The properties of a message or attachment below `path` in the container."""

    def __init__(self, ole: Any, path: tuple[str, ...], head: int) -> None:
        self._ole, self._path = ole, path
        self._fixed = self._fixed_properties(head)
        page = next((self._fixed[code] & 0xFFFF for code in _CODE_PAGES if code in self._fixed), 1252)
        self._encoding = f"cp{page}" if page not in (65001, 1200) else "utf-8"

    def _fixed_properties(self, head: int) -> dict[int, int]:
        data = self._stream(_PROPERTIES)
        entries = (data[at : at + 16] for at in range(head, len(data) - 15, 16))
        return {struct.unpack_from("<H", entry, 2)[0]: struct.unpack_from("<Q", entry, 8)[0] for entry in entries}

    def _stream(self, name: str) -> bytes:
        path = [*self._path, name]
        return bytes(self._ole.openstream(path).read()) if self._ole.get_type(path) == olefile.STGTY_STREAM else b""

    def binary(self, code: int) -> bytes:
        return self._stream(f"__substg1.0_{code:04X}0102")

    def text(self, code: int) -> str:
        if data := self._stream(f"__substg1.0_{code:04X}001F"):
            return data.decode("utf-16-le", "replace")
        data = self._stream(f"__substg1.0_{code:04X}001E")
        try:
            return data.decode(self._encoding)
        except (LookupError, UnicodeDecodeError):
            return plain.decode(data)

    def line(self, code: int) -> str:
        return clean(self.text(code))

    def date(self) -> str:
        ticks = self._fixed.get(_SUBMITTED) or self._fixed.get(_DELIVERED) or 0
        try:
            return (_EPOCH + datetime.timedelta(microseconds=ticks // 10)).isoformat(" ", "minutes") if ticks else ""
        except OverflowError:
            return ""

    def message_inside(self) -> _Storage | None:
        path = (*self._path, f"__substg1.0_{_DATA:04X}000D")
        return _Storage(self._ole, path, 24) if self._ole.exists([*path, _PROPERTIES]) else None

    def attachments(self) -> Iterator[_Storage]:
        names = {entry[len(self._path)] for entry in self._ole.listdir() if entry[: len(self._path)] == [*self._path]}
        for name in sorted(name for name in names if name.startswith("__attach_version1.0_#")):
            yield _Storage(self._ole, (*self._path, name), 8)


def _body(message: _Storage) -> list[Element]:
    html = message.binary(_HTML)
    text = markup.decode(html) if html else message.text(_HTML)
    if text:
        try:
            if elements := markup.elements_of(text)[0]:
                return elements
        except ExtractionFailed:
            pass
    if text := message.text(_BODY):
        return list(plain.paragraphs(plain.prose(text)))
    packed = message.binary(_RTF)
    return rtf.elements_of(unpacked_rtf(packed)) if packed else []


def unpacked_rtf(data: bytes) -> bytes:
    """RTF as Outlook packs it. Raises ExtractionFailed."""
    if len(data) < 16:
        raise ExtractionFailed(Reason.DAMAGED)
    size, kind = struct.unpack_from("<I4s", data, 4)
    if kind == b"MELA":
        return data[16 : 16 + size]
    if kind != b"LZFu" or size > _MAX_RTF:
        raise ExtractionFailed(Reason.DAMAGED)
    ring = bytearray(_DICTIONARY.ljust(_RING, b"\0"))
    out, write, at = bytearray(), len(_DICTIONARY), 16
    while at < len(data) and len(out) < size:
        control, at = data[at], at + 1
        for bit in range(8):
            if at + 1 + (control >> bit & 1) > len(data) or len(out) >= size:
                break
            if control >> bit & 1:
                reference, at = int.from_bytes(data[at : at + 2], "big"), at + 2
                if reference >> 4 == write:
                    return bytes(out)
                taken = [(reference >> 4) + step for step in range((reference & 15) + 2)]
            else:
                ring[write], taken, at = data[at], [write], at + 1
            for position in taken:
                value = ring[position % _RING]
                ring[write] = value
                out.append(value)
                write = (write + 1) % _RING
    return bytes(out)


def _sections(message: _Storage, scope: Scope) -> tuple[list[list[Element]], str]:
    subject = message.line(_SUBJECT)
    sender = " ".join(part for part in (message.line(_SENDER), message.line(_SENDER_ADDRESS)) if part)
    others = [(name, message.line(code)) for name, code in (("To", _TO), ("Cc", _CC), ("Bcc", _BCC))]
    fields = [("From", sender), *others, ("Date", message.date())]
    sections = [of_part(BODY, [*mail.heading(subject, fields), *_body(message)])]
    for number, attachment in enumerate(message.attachments(), start=1):
        names = (attachment.line(code) for code in (_LONG_NAME, _SHOWN_NAME, _SHORT_NAME))
        name = next((name for name in names if name), f"part {number}")
        inner = attachment.message_inside()
        if inner is None:
            sections += scope.inside(name, lambda found=attachment: found.binary(_DATA))  # type: ignore[misc]
        else:
            name = name if name.lower().endswith(".msg") else f"{name}.msg"
            sections += scope.within(name, lambda below, found=inner: Content(*_sections(found, below)))  # type: ignore[misc]
    return sections, subject


def read(file: BinaryIO, scope: Scope) -> Content:
    """Raises ExtractionFailed."""
    with opened_ole(file) as ole:
        if not ole.exists(_PROPERTIES):
            raise ExtractionFailed(Reason.DAMAGED)
        sections, subject = _sections(_Storage(ole, (), 32), scope)
    return Content(sections, subject[:HEADING_MAX_CHARS])
