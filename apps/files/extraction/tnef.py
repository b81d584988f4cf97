"""What Outlook wraps into winmail.dat (TNEF): the body where it is richer than the mail's, and the attachments.

Names of attributes are those of [MS-OXTNEF]; properties inside are encoded as there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from apps.files.extraction import markup, outlook, plain, rtf
from apps.files.extraction.assemble import clean
from apps.files.extraction.content import MAX_PARTS, Content, Scope
from apps.files.extraction.types import Element, ExtractionFailed, Reason

_RENDERING, _TITLE, _DATA, _ATTACHMENT = 0x9002, 0x8010, 0x800F, 0x9005
_BODY, _PROPERTIES, _CODE_PAGE = 0x800C, 0x9003, 0x9007
_HTML, _RTF, _TEXT, _LONG_NAME, _OBJECT = 0x1013, 0x1009, 0x1000, 0x3707, 0x3701
_FIXED = {2: 4, 3: 4, 4: 4, 0x0A: 4, 0x0B: 4, 5: 8, 6: 8, 7: 8, 0x14: 8, 0x40: 8, 0x48: 16}
_VARIABLE = (0x1E, 0x1F, 0x102, 0x0D)
_MULTIPLE, _WIDE = 0x1000, 0x1F
_MAX_ATTRIBUTES, _MAX_PROPERTIES = 20_000, 5_000


@dataclass(slots=True)
class _Attached:
    name: str = ""
    data: bytes = b""


@dataclass(slots=True)
class _Message:
    encoding: str = "cp1252"
    body: bytes = b""
    properties: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    attached: list[_Attached] = field(default_factory=list)


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 6
    for _ in range(_MAX_ATTRIBUTES):
        if at + 9 > len(data):
            return
        _, name, _, size = struct.unpack_from("<BHHI", data, at)
        yield name, data[at + 9 : at + 9 + size]
        at += 11 + size


def _padded(size: int) -> int:
    return (size + 3) & ~3


def _properties(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Number, type and first value of each property. Raises struct.error where they do not hold together."""
    (count,), at = struct.unpack_from("<I", data), 4
    for _ in range(min(count, _MAX_PROPERTIES)):
        kind, number = struct.unpack_from("<HH", data, at)
        at += 4
        if number >= 0x8000:
            by_name, size = struct.unpack_from("<II", data, at + 16)
            at += 24 + (_padded(size) if by_name else 0)
        base = kind & ~_MULTIPLE
        values = 1
        if base in _VARIABLE or kind & _MULTIPLE:
            (values,) = struct.unpack_from("<I", data, at)
            at += 4
        first: bytes | None = None
        for _ in range(min(values, _MAX_PROPERTIES)):
            if base in _VARIABLE:
                (size,) = struct.unpack_from("<I", data, at)
                at += 4
            elif base in _FIXED:
                size = _FIXED[base]
            else:
                return
            first = data[at : at + size] if first is None else first
            at += _padded(size)
        yield number, base, first or b""


def _parsed(data: bytes) -> _Message:
    message = _Message()
    for name, value in _attributes(data):
        if name == _CODE_PAGE and len(value) >= 4:
            message.encoding = f"cp{struct.unpack_from('<I', value)[0]}"
        elif name == _BODY:
            message.body = value
        elif name == _PROPERTIES:
            message.properties = {number: (kind, found) for number, kind, found in _properties(value)}
        elif name == _RENDERING:
            message.attached.append(_Attached())
        elif message.attached:
            _add(message.attached[-1], name, value, message.encoding)
    return message


def _add(attached: _Attached, name: int, value: bytes, encoding: str) -> None:
    if name == _TITLE:
        attached.name = attached.name or clean(_text(value.rstrip(b"\0"), encoding))
    elif name == _DATA:
        attached.data = value
    elif name == _ATTACHMENT:
        for number, kind, found in _properties(value):
            if number == _LONG_NAME and found:
                attached.name = clean(_string(kind, found, encoding)) or attached.name
            elif number == _OBJECT and not attached.data:
                attached.data = found[16:]  # behind the number of its interface


def _text(value: bytes, encoding: str) -> str:
    try:
        return value.decode(encoding)
    except (LookupError, UnicodeDecodeError):
        return plain.decode(value)


def _string(kind: int, value: bytes, encoding: str) -> str:
    if kind == _WIDE:
        return value.decode("utf-16-le", "replace").rstrip("\0")
    return _text(value.rstrip(b"\0"), encoding)


def _body(message: _Message) -> list[Element]:
    kind, html = message.properties.get(_HTML, (0, b""))
    if html:
        try:
            return markup.elements_of(_string(kind, html, "") if kind == _WIDE else markup.decode(html))[0]
        except ExtractionFailed:
            pass
    if packed := message.properties.get(_RTF, (0, b""))[1]:
        try:
            return rtf.elements_of(outlook.unpacked_rtf(packed))
        except ExtractionFailed:
            pass
    kind, text = message.properties.get(_TEXT, (0, message.body))
    return list(plain.paragraphs(plain.prose(_string(kind, text, message.encoding)))) if text else []


def read(data: bytes, scope: Scope) -> Content:
    """Raises ExtractionFailed."""
    try:
        message = _parsed(data)
        body = _body(message)
    except struct.error as error:
        raise ExtractionFailed(Reason.DAMAGED) from error
    sections = [body] if body else []
    for number, attached in enumerate(message.attached[:MAX_PARTS], start=1):
        inner = attached.data
        name = attached.name or f"part {number}"
        sections += scope.inside(name, lambda inner=inner: inner)  # type: ignore[misc]
    return Content(sections)
